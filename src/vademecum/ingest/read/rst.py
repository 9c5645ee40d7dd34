"""reStructuredText to markdown, by way of docutils; Sphinx's own markup keeps its content."""

from vademecum.ingest.read.content import Content, clean_text


def read_rst(text: str) -> Content:
    """The document's title is the title; text that docutils cannot parse is kept as it is."""
    from vademecum.ingest.read.rst_parse import parse
    from vademecum.ingest.read.rst_writer import RstWriter

    document = parse(text)
    if document is None:
        from vademecum.ingest.read.text import read_text

        return read_text(text)
    writer = RstWriter()
    markdown = writer.write(document)
    return Content(
        title=clean_text(writer.title), text=clean_text(markdown), metadata=writer.fields
    )
