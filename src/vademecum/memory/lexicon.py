"""Which words are harmless: dictionaries without names, and short lists of our own."""

import gzip
from functools import lru_cache
from importlib.resources import files

RANKS = frozenset(
    """private pte aviator avr sailor seaman boatswain bombardier
    corporal cpl mcpl sergeant sgt warrant wo mwo cwo cadet ocdt
    lieutenant lt 2lt slt captain capt major maj colonel col ltcol lcol general gen bgen admiral
    commander cdr lcdr petty po cpo mr mrs ms miss mister dr doctor prof professor sir madam
    monsieur madame mademoiselle mme mlle soldat sdt caporal cplc sergent adjudant adj capitaine
    lieutenante colonelle caporale sergente adjudante majore matelot aviatrice""".split()  # noqa: SIM905
)
"""Ranks and titles, as they stand before a name; harmless without one."""

HARMLESS = RANKS | frozenset(
    """english french german spanish italian portuguese dutch arabic chinese japanese korean
    russian ukrainian polish anglais francais allemand espagnol italien
    python java javascript typescript rust golang kotlin swift ruby perl php haskell scala sql
    html css json yaml toml xml csv pdf markdown http https rest api apis cli gui url uri sdk mcp
    linux unix windows macos ubuntu debian fedora android ios docker kubernetes k8s helm terraform
    ansible postgresql postgres mysql sqlite mongodb redis kafka git github gitlab jenkins pip uv
    pytest ruff mypy numpy pandas pytorch tensorflow fastapi django flask react vue angular node
    npm aws azure gcp openai claude anthropic chatgpt gpt llm llms rag ai ml devops sre ci cd qa
    ssh tls ssl tcp udp dns ip vpn oauth saml jwt rbac cpu gpu ram ssd io id ids os vm vms pr prs
    etcd kubelet kubectl kubeadm nginx grafana prometheus qdrant pinecone neo4j neon pgvector
    excel powerpoint word outlook sharepoint teams slack jira confluence
    policy pacenote pacenotes caf caf-gpt op ops operation prime foo agent agents vade vademecum
    google microsoft amazon apple oracle ibm intel nvidia vmware cloudflare wordpress wikipedia
    kilo mega giga tera peta exa milli nano pico kibi mebi gibi tebi pebi kibibyte mebibyte
    gibibyte tebibyte kibibytes mebibytes gibibytes tebibytes kilobytes megabytes gigabytes
    terabytes ns ms kb
    mb gb tb kib mib gib tib hz khz mhz ghz px
    bgp ospf vlan vxlan mtu nic nics nvme sata raid lvm nfs smb iscsi ntp dhcp smtp imap ldap
    kerberos
    sasl pkcs ocsp crl rsa ecdsa aes sha csrf xss cors csp ddos waf cdn elb alb nlb vpc eks
    aks gke iam
    sts arn sqs sns rds sla slo sli slos slis kvm qemu lxc oom pid pids inode inodes fd fds
    tty stdin
    stdout stderr eof ascii unicode utf posix glibc musl elf bpf ebpf seccomp apparmor selinux
    chroot
    sudo chmod chown grep sed awk jq yq tar gzip zstd xz rsync scp sftp ftp tcpdump strace gdb lldb
    valgrind cmake gcc clang llvm bazel gradle maven yarn pnpm webpack vite babel eslint deno
    bun tsc
    ipvs nat sctp apf cla clas ux kops kubespray krew crictl bootkube klog kuberc corefile credspec
    crt pem svc cfg ini conf tgz deb rpm exe dll jar ctrl
    firefox chrome vim emacs vscode bash zsh curl wget openssl openid openstack netfilter wireguard
    daod qr&o nco ncm per pdr mos mosid pat bmq dln utf8 utf base64 sha256 md5 oauth2 ipv4 ipv6
    pvc pvcs csr csrs cel dra numa wal kms cni qos ga oci pdb pdbs gmsa ha amqp pv pvs ttl ips jwts
    san ebs hdd ipam mac srv hmac pki gpus gpg gid uid uids si crd crds csi cri ssds acl acls cidr
    kube autoscaling autoscaler autoscale liveness rollout rollouts rollback rollup preemptor
    integrations preflight cron scopes authorizer datastore mem superset etcdctl scalable auth
    subnet subnets demo writeable provisioners provisioner encodings failover lookups lookup proc
    cryptographic ping allocator checkpointed repo repos config configs metadata namespace
    namespaces plugin plugins runtime runtimes timestamp timestamps workflow workflows username
    hostname hostnames localhost login logout workload workloads webhook webhooks endpoint endpoints
    backend frontend async sync middleware refactor refactoring debug debugging deployable sidecar
    sidecars daemon daemonset statefulset replicaset configmap ingress egress containerd runc cgroup
    cgroups sysctl systemd iptables apiserver scheduler tokenizer embeddings tuple boolean enum
        officer officers naval mentor mentors communicator technician infantry artillery armoured
    logistics
    signaller infanteer loadmaster storeman geomatics crewman aircrew bosun
    signaleur signaleuse mecanicienne developpeuse programmeuse officiere corvette fregate
    electricienne informaticienne caporaux steward puces sergente caporale files done necessary
    kind null full self co ons re non
    patch put delete head min max heal email emails inbox faq okay ok hi etc vs eg
    ie""".split()  # noqa: SIM905
)
"""Ranks, trades, products, agents, languages: proper nouns that tell of no person or place."""

TRADES = frozenset(
    """clerk gunner stoker padre marine carpenter welder mason baker butcher gardener commodore
    trainer diver drone hull barber fisher hunter ranger watchman shepherd tailor smith cook porter
    piper archer cooper tanner turner taylor miller potter painter weaver""".split()  # noqa: SIM905
)
"""What people do that are names too: harmless in lower case where `I am a` stands before."""

CAPITAL = frozenset(
    """service test session block check register key keys node field page pages port ports default
    rest word key null register label list link sender handler container ai agent server client
    english code space master read pattern state trace value role roles key range class main
    pod pods memory manager topology standards security machine machines token replication device
    resource resources dashboard deployment controller custom persistent disk admission bootstrap
    stateful cluster job running ready rolling peak counter set sets rule taint beta alpha go book
    general private major captain sale cloud desktop cost case system general network
    volume storage secret secrets job jobs pool stack channel sample bash core""".split()  # noqa: SIM905
)
"""Words that are names too, but that technical writing has with a capital."""

STARTERS = frozenset(
    """a able all an and any are as at be been before below both but by call can cancel change check
    choose clear click close come copy do does down draw each early else even every fail few fill
    find first fix for forget from further general get give given go going good had hand hang has
    have he help her here high his hold how i if in is it its join just keep key large last le les
        la le de du en un une mon ma mes nous on ou par pas pour que qui sa son sur tu vos learn
    less let
    like likely list load lock look low main mais many may mix more most move my near new next
    nice no not now of old on once one only or order other our out over pass pick place plain
    please rather
    plus point pull push put quick quickly ran read ready real record red remove render reset right
    roll run running same save say search see seek select send set share she short should show sign
    six so some soon stack start stay still stop store such super sure take tell ten test than that
    the their then there these they this those till to track trace true try turn two under unless
    until up update upgrade use user using very via view wait want was we well were what when where
    which while who why will with within word work would write yes yet you your""".split()  # noqa: SIM905
)
"""Everyday words that begin a sentence more often than a name does, among words that are both."""

PERSONAL = frozenset(
    [
        "frank",
        "jack",
        "ken",
        "grant",
        "rose",
        "mark",
        "bill",
        "sue",
        "amber",
        "dawn",
        "earl",
        "gene",
        "guy",
        "ray",
        "rich",
        "rob",
        "ron",
        "roman",
        "scarlet",
        "stark",
        "summer",
        "wade",
        "ward",
        "van",
        "smith",
        "baker",
        "cooper",
        "key",
        "kettle",
        "young",
        "hardy",
        "wren",
        "ash",
        "darling",
        "farmer",
        "hunter",
        "knight",
        "parker",
        "noel",
        "belle",
        "aline",
        "alma",
        "crystal",
        "dale",
        "dick",
        "don",
        "drew",
        "duke",
        "ally",
        "ham",
        "lance",
        "pat",
        "robin",
        "victor",
        "grace",
        "faith",
        "joy",
        "melody",
        "mercy",
        "max",
        "miles",
        "nick",
        "page",
        "piper",
        "pope",
        "roy",
        "jean",
        "ace",
        "art",
    ]
)
"""Of the words that are both, those that are mostly names where they have a capital."""

OPERATIONS = frozenset(
    """reassurance unifier impact lentus laser caribbe nanook artemis projection neon calumet
    athena mobile apollo deliverance halo podium hestia honour hamlet jade proteus soprano
    kobold crocodile palladium harmony kinetic limpid renaissance cadence presence saturn
    medusa attention globe aegis savanne frontier noble driftnet sirona carillon""".split()  # noqa: SIM905
)
"""Names of operations that are public; a name that is not listed counts as unknown."""

MONTHS = frozenset(
    """january february april june july september october november december jan feb mar apr jun jul
    aug sept oct nov dec janvier fevrier avril mai juin juillet aout septembre octobre novembre
    decembre janv fev fevr juil""".split()  # noqa: SIM905
)
MONTHS_TOO = frozenset(
    {"may", "march", "august", "mars", "sept", "mar", "jan", "dec", "mai", "avr", "sep"}
)
"""Months that are other words as well: dates beside a number, an ordinal or a preposition."""
DAYS = frozenset(
    """monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays
    thursdays fridays saturdays sundays lundi mardi mercredi jeudi vendredi samedi dimanche
    christmas easter noel thanksgiving ramadan hanukkah""".split()  # noqa: SIM905
)
NUMBERS = frozenset(
    """zero oh one two three four five six seven eight nine ten eleven twelve thirteen fourteen
    fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty
    ninety hundred thousand un deux trois quatre cinq sept huit neuf dix onze douze treize quatorze
    quinze seize vingt trente quarante cinquante soixante cent cents mille double triple
    """.split()  # noqa: SIM905
)
ORDINALS = frozenset(
    """first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth
    fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth thirtieth premier
    premiere deuxieme troisieme quatrieme cinquieme sixieme septieme huitieme neuvieme dixieme
    """.split()  # noqa: SIM905
)
PHONETIC = frozenset(
    """alpha alfa bravo charlie delta echo foxtrot golf hotel india juliett juliet kilo lima mike
    november oscar papa quebec romeo sierra tango uniform victor whiskey xray yankee zulu
    """.split()  # noqa: SIM905
)
UNITS = frozenset(
    """battalion bn regiment regt squadron sqn brigade bde division platoon company coy troop wing
    flotilla garrison cfb base ambulance battery detachment fleet ship hmcs bataillon escadron
    peloton compagnie escadre garnison bfc navire section corps""".split()  # noqa: SIM905
)


@lru_cache(maxsize=1)
def words() -> frozenset[str]:
    """Ordinary and technical words, folded."""
    return _read("words") | _read("terms") | _read("packages") | HARMLESS | MONTHS_TOO


@lru_cache(maxsize=1)
def ordinary() -> frozenset[str]:
    """Words of everyday English, folded; few names and technical terms are among them."""
    return _read("words")


@lru_cache(maxsize=1)
def technical() -> frozenset[str]:
    """Words that technical writing has with a capital, folded; none is a name."""
    return (_read("terms") | _read("packages") | HARMLESS | CAPITAL) - _read("ambiguous") | CAPITAL


@lru_cache(maxsize=1)
def ambiguous() -> frozenset[str]:
    """Everyday words that are names too, folded."""
    return _read("ambiguous") - HARMLESS


def _read(name: str) -> frozenset[str]:
    data = files("vademecum.memory").joinpath("words", f"{name}.txt.gz").read_bytes()
    return frozenset(gzip.decompress(data).decode("ascii").split())
