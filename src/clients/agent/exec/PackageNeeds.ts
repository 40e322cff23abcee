import type { ApprovalKind } from "../boundary/Approval.ts"
import { argumentsOf, hasOption, words, type Arguments } from "./ProgramArguments.ts"

type Kinds = ReadonlyArray<ApprovalKind>
const none: Kinds = []
const installs: Kinds = ["network", "install"]
const network: Kinds = ["network"]

/** Commands of a package manager, by what they need. "" is the manager's name alone. */
interface Manager {
  /** fetch what others wrote, and mostly run what it brings */
  readonly installs?: ReadonlySet<string>
  readonly network?: ReadonlySet<string>
  /** write to the history of the repository */
  readonly commit?: ReadonlySet<string>
  /** commands that have commands of their own: those of them that fetch */
  readonly within?: Readonly<Record<string, ReadonlySet<string>>>
  readonly valued?: string
}

const nodeValued = "--prefix -C --dir --cwd -F --filter --registry --loglevel"
const npmNetwork =
  "audit outdated view info show search publish unpublish login logout whoami ping access owner adduser dist-tag deprecate profile token team org"

/** Sources: each manager's reference. Commands that only read files, or run the project's scripts, need nothing. */
const managers: Readonly<Record<string, Manager>> = {
  npm: {
    installs: words(
      "install i in ins add ci clean-install update up upgrade create link ln install-test it install-ci-test cit"
    ),
    network: words(npmNetwork),
    valued: `${nodeValued} -w --workspace`
  },
  pnpm: {
    installs: words("install i add update up upgrade create dlx import fetch link"),
    network: words(npmNetwork),
    valued: nodeValued
  },
  yarn: {
    installs: new Set([
      "",
      ...words("install add up upgrade upgrade-interactive create dlx import link global")
    ]),
    network: words("audit outdated info npm publish login logout set"),
    within: { workspaces: words("focus"), plugin: words("import") },
    valued: nodeValued
  },
  bun: {
    installs: words("install i add a update upgrade create c"),
    network: words("audit outdated publish info"),
    valued: "--cwd --filter"
  },
  npx: {},
  pip: { installs: words("install download wheel"), network: words("index search") },
  pipx: { installs: words("install inject upgrade upgrade-all run runpip reinstall") },
  uv: {
    installs: words("add sync lock remove build"),
    network: words("publish"),
    within: {
      pip: words("install sync compile download"),
      tool: words("install run upgrade"),
      python: words("install upgrade"),
      self: words("update")
    },
    valued: "--project --directory -p --python"
  },
  uvx: { installs: new Set([""]) },
  poetry: {
    installs: words("add install update lock sync remove"),
    network: words("publish search"),
    within: { self: words("add update") }
  },
  pipenv: { installs: words("install update sync lock upgrade") },
  pdm: { installs: words("add install update sync lock"), network: words("publish") },
  rye: { installs: words("add sync install lock fetch"), network: words("publish") },
  "pyproject-build": { installs: new Set([""]) },
  twine: { network: words("upload") },
  cargo: {
    installs: words("add install fetch update vendor generate-lockfile binstall publish"),
    network: words("search login owner yank info audit outdated")
  },
  go: { installs: words("get"), within: { mod: words("download tidy vendor"), work: words("sync vendor") } },
  gem: { installs: words("install update fetch"), network: words("search push outdated") },
  bundle: { installs: new Set(["", ...words("install update add lock")]), network: words("outdated") },
  composer: {
    installs: words("install update upgrade require create-project global"),
    network: words("outdated search audit")
  },
  deno: { installs: words("install i add cache upgrade"), network: words("publish outdated") },
  dotnet: {
    installs: words("restore"),
    within: {
      add: words("package"),
      tool: words("install update restore"),
      workload: words("install update restore"),
      new: words("install"),
      nuget: words("push")
    }
  },
  conda: {
    installs: words("install create update upgrade"),
    network: words("search"),
    within: { env: words("create update") }
  },
  brew: { installs: words("install upgrade update tap reinstall"), network: words("search info outdated") },
  apt: {
    installs: words("install update upgrade remove full-upgrade build-dep"),
    network: words("source download")
  },
  dnf: { installs: words("install update upgrade remove"), network: words("search info") },
  apk: { installs: words("add update upgrade del") },
  pacman: { installs: words("-S -Sy -Syu -Syyu -U -R -Rs -Rns") },
  zypper: { installs: words("install in update up refresh remove") },
  snap: { installs: words("install refresh") },
  flatpak: { installs: words("install update") },
  rustup: {
    installs: words("install update"),
    within: {
      toolchain: words("install update"),
      component: words("add"),
      target: words("add"),
      self: words("update")
    }
  },
  nix: { installs: words("profile shell run develop build"), within: { flake: words("update lock") } },
  mix: { installs: words("deps.get deps.update local.hex local.rebar archive.install") },
  pod: { installs: words("install update"), within: { repo: words("update add") } },
  flutter: { installs: words("upgrade"), within: { pub: words("get add upgrade") } },
  dart: { within: { pub: words("get add upgrade") } },
  swift: { within: { package: words("resolve update") } },
  opam: { installs: words("install update upgrade") },
  cabal: { installs: words("install update fetch") },
  luarocks: { installs: words("install") },
  cpanm: { installs: new Set([""]) },
  playwright: { installs: words("install install-deps") },
  cypress: { installs: words("install") },
  asdf: { installs: words("install"), within: { plugin: words("add update") } },
  mise: { installs: words("install use upgrade") },
  volta: { installs: words("install fetch pin") },
  corepack: { installs: words("use up install prepare") },
  nvm: { installs: words("install") }
}
const sameAs: Readonly<Record<string, string>> = {
  pip3: "pip",
  mamba: "conda",
  micromamba: "conda",
  "apt-get": "apt",
  aptitude: "apt",
  yum: "dnf",
  pnpx: "npx",
  bunx: "npx",
  bundler: "bundle"
}

const offline = words("--offline --frozen-offline --prefer-offline --no-index")
const asks = words("-h --help --version -V")

const isFetched = /^(create-|@?[^@]+@.)/

/** npx and bunx run what is installed; they fetch what is not, or another version. */
const packageRunner = (rest: ReadonlyArray<string>): Kinds => {
  const { operands, options } = argumentsOf(rest, words("-p --package -w --workspace -c --call"), true)
  const isAsked = hasOption(options, words("-y --yes -p --package"))
  return isAsked || isFetched.test(operands[0] ?? "") ? installs : none
}

/** Kinds that a word alone does not tell. */
const special: Readonly<Record<string, (told: Arguments, rest: ReadonlyArray<string>) => Kinds | undefined>> =
  {
    npx: (_, rest) => packageRunner(rest),
    npm: ({ operands, options }, rest) => {
      const [name = "", first] = operands
      if (name === "audit" && first === "fix") return installs
      if (name === "init" && first !== undefined) return installs
      if (name === "exec" || name === "x") return packageRunner(rest.slice(rest.indexOf(name) + 1))
      if (name !== "version" || first === undefined) return undefined
      return options.includes("--no-git-tag-version") ? none : ["commit"]
    },
    yarn: ({ operands }, rest) =>
      operands[0] === "workspace"
        ? packageKinds("yarn", rest.slice(rest.indexOf("workspace") + 2))
        : undefined,
    bun: (_, rest) => (rest.length === 0 ? none : rest[0] === "x" ? packageRunner(rest.slice(1)) : undefined),
    pip: ({ operands, options }) =>
      operands[0] === "list" && hasOption(options, words("-o --outdated")) ? network : undefined,
    uv: ({ operands }, rest) =>
      operands[0] === "run" && hasOption(rest, words("--with --with-requirements --isolated"))
        ? installs
        : undefined,
    go: ({ operands }, rest) => {
      const [name = "", first = ""] = operands
      if ((name === "install" || name === "run") && /@/.test(first)) return installs
      const isUpdate = rest.includes("-u") || rest.includes("-versions")
      return name === "list" && rest.includes("-m") && isUpdate ? network : undefined
    },
    deno: ({ operands }) =>
      /^(run|test|serve|x)$/.test(operands[0] ?? "") && /^(https?:|npm:|jsr:)/.test(operands[1] ?? "")
        ? installs
        : undefined,
    "pyproject-build": ({ options }) => (hasOption(options, words("-n --no-isolation")) ? none : installs),
    cargo: ({ operands, options }) =>
      operands[0] === "install" && options.includes("--list") ? none : undefined
  }

/** The needs of `PROGRAM REST` of a package manager; undefined of any other program. */
export const packageKinds = (program: string, given: ReadonlyArray<string>): Kinds | undefined => {
  const name = Object.hasOwn(sameAs, program) ? (sameAs[program] ?? program) : program
  const known = Object.hasOwn(managers, name) ? managers[name] : undefined
  if (known === undefined) return undefined
  // `cargo +nightly build`
  const rest = given[0]?.startsWith("+") === true ? given.slice(1) : given
  const told = argumentsOf(rest, words(known.valued ?? "-C -p"))
  const [first = "", second = ""] = told.operands
  if (told.options.some((option) => asks.has(option)) && told.operands.length < 2) return none
  const own = Object.hasOwn(special, name) ? special[name]?.(told, rest) : undefined
  if (own !== undefined) return own
  const within =
    known.within !== undefined && Object.hasOwn(known.within, first) ? known.within[first] : undefined
  const names = known.installs ?? words("")
  // uvx, cpanm and a build fetch their arguments; yarn and bundle alone install.
  const isAlways = names.size === 1 && names.has("")
  const isInstall =
    isAlways ||
    names.has(first) ||
    within?.has(second) === true ||
    (name === "pacman" && hasOption(rest, names))
  const kinds = isInstall ? installs : known.network?.has(first) === true ? network : none
  return hasOption(told.options, offline) ? kinds.filter((kind) => kind !== "network") : kinds
}
