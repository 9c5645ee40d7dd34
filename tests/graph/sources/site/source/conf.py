project = "Shoplib"
version = "2.1"
release = "2.1.0"
html_theme = "basic"
html_copy_source = False
