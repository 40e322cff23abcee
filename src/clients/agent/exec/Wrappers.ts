import { gitRuns } from "./GitNeeds.ts"
import { shells } from "./ShellCommands.ts"
import { argumentsOf, words } from "./ProgramArguments.ts"

/** The programs a command runs in turn: commands by their words, and texts that a shell reads. */
interface Runs {
  readonly commands?: ReadonlyArray<ReadonlyArray<string>>
  readonly texts?: ReadonlyArray<string>
}

type Arguments = ReadonlyArray<string>
type Unwrap = (rest: Arguments, input: string | undefined) => Runs

const assignment = /^[A-Za-z_]\w*=/

/** A program that runs the command after its options and after `skip` operands of its own. */
const before =
  (valued: string, skip = 0): Unwrap =>
  (rest) => ({ commands: [argumentsOf(rest, words(valued), true).operands.slice(skip)] })

/** Operands of a command that is behind a word of the program: `poetry run x`. */
const after =
  (names: string, valued = ""): Unwrap =>
  (rest) => {
    const [name = "", ...inner] = argumentsOf(rest, words(valued), true).operands
    return words(names).has(name) ? { commands: [argumentsOf(inner, words(valued), true).operands] } : {}
  }

/** Every operand is a text: `concurrently "a" "b"`. */
const everyText =
  (valued: string): Unwrap =>
  (rest) => ({ texts: argumentsOf(rest, words(valued)).operands })

/** All operands together are a text: `watch a b`. */
const joined =
  (valued: string): Unwrap =>
  (rest) => ({ texts: [argumentsOf(rest, words(valued), true).operands.join(" ")] })

const isDash = /^-[a-zA-Z]*c[a-zA-Z]*$/

/** `sh -c TEXT`, `sh <<E`. A script that is a file is not read. */
const shell: Unwrap = (rest, input) => {
  const at = rest.findIndex((word) => isDash.test(word))
  if (at >= 0) {
    const text = rest.slice(at + 1).find((word) => !word.startsWith("-"))
    return text === undefined ? {} : { texts: [text] }
  }
  const { operands } = argumentsOf(rest, words("-o +o -O +O --rcfile --init-file"))
  return operands.length === 0 && input !== undefined ? { texts: [input] } : {}
}

const optionText =
  (names: string, otherwise: Unwrap = () => ({})): Unwrap =>
  (rest, input) => {
    const at = rest.findIndex((word) => words(names).has(word))
    return at >= 0 ? { texts: [rest[at + 1] ?? ""] } : otherwise(rest, input)
  }

const env: Unwrap = (rest) => {
  const split = rest.findIndex((word) => /^(-S|--split-string)$/.test(word))
  if (split >= 0) return { texts: [rest.slice(split + 1).join(" ")] }
  const { operands } = argumentsOf(rest, words("-u --unset -C --chdir"), true)
  const start = operands.findIndex((word) => !assignment.test(word))
  return start < 0 ? {} : { commands: [operands.slice(start)] }
}

const runners = words("-exec -execdir -ok -okdir -x -X --exec --exec-batch")

/** find and fd: up to `;` or `+`, as often as there is one. */
const found: Unwrap = (rest) => {
  const commands: Array<Arguments> = []
  rest.forEach((word, at) => {
    if (!runners.has(word)) return
    const inner = rest.slice(at + 1)
    const end = inner.findIndex((one) => one === ";" || one === "+")
    commands.push(end < 0 ? inner : inner.slice(0, end))
  })
  return { commands }
}

const parallel: Unwrap = (rest) => {
  const { operands } = argumentsOf(
    rest,
    words("-j --jobs -n -N -a --arg-file -d --delimiter --colsep -S"),
    true
  )
  const end = operands.findIndex((word) => /^:{3,4}\+?$/.test(word))
  return { texts: [(end < 0 ? operands : operands.slice(0, end)).join(" ")] }
}

const git: Unwrap = (rest) => {
  const { command, text } = gitRuns(rest)
  return {
    ...(command !== undefined && { commands: [command] }),
    ...(text !== undefined && { texts: [text] })
  }
}

/** `npx x@1 y`: the package's program, which mostly has its name. */
const programOfPackage = (specifier: string): string =>
  specifier.replace(/(?!^)@[^/]*$/, "").replace(/^@[^/]+\//, "")

const fetching = "-p --package -w --workspace --from --with --python"
const packageProgram =
  (skipped = ""): Unwrap =>
  (rest) => {
    const at = rest.findIndex((word) => word === "-c" || word === "--call")
    if (at >= 0) return { texts: [rest[at + 1] ?? ""] }
    const { operands } = argumentsOf(rest, words(fetching), true)
    const [name, ...inner] = words(skipped).has(operands[0] ?? "") ? operands.slice(1) : operands
    return name === undefined ? {} : { commands: [[programOfPackage(name), ...inner]] }
  }

/** npm, pnpm and yarn: `exec`, `dlx` and the like; all else is a command or a script of theirs. */
const manager: Unwrap = (rest, input) => {
  const { operands } = argumentsOf(rest, words("--prefix -C --dir --cwd -F --filter -w --workspace"), true)
  const [name = "", ...inner] = operands
  return words("exec x dlx").has(name) ? packageProgram()(inner, input) : {}
}

const python: Unwrap = (rest) => {
  const at = rest.findIndex((word) => !word.startsWith("-") || word === "-m" || word === "-c")
  const name = rest[at + 1]
  if (rest[at] !== "-m" || name === undefined) return {}
  const program = name === "build" ? "pyproject-build" : name.replaceAll("_", "-")
  return { commands: [[program, ...rest.slice(at + 2)]] }
}

const uv: Unwrap = (rest) => {
  const valued = words(
    "--with --with-requirements --with-editable --extra --group -p --python --project --directory --env-file -m"
  )
  const [name = "", ...inner] = argumentsOf(rest, valued, true).operands
  if (name !== "run") return {}
  const at = inner.indexOf("-m")
  return { commands: [at === 0 ? ["python", ...inner] : argumentsOf(inner, valued, true).operands] }
}

const trap: Unwrap = ([text]) => (text === undefined || text.startsWith("-") ? {} : { texts: [text] })
const cargo: Unwrap = (rest) => {
  const [name, ...inner] = rest
  if (name !== "watch") return {}
  return {
    texts: inner.flatMap((word, at) =>
      word === "-x" ? [`cargo ${inner[at + 1] ?? ""}`] : word === "-s" ? [inner[at + 1] ?? ""] : []
    )
  }
}

const pythonNames = /^(python|pypy)[\d.]*$/

/** Programs that run others, by how their arguments say so. Sources: their manual pages. */
const wrappers: Readonly<Record<string, Unwrap>> = {
  ...Object.fromEntries(Array.from(shells, (name) => [name, shell])),
  env,
  find: found,
  fd: found,
  fdfind: found,
  git,
  parallel,
  npm: manager,
  pnpm: manager,
  yarn: manager,
  npx: packageProgram(),
  pnpx: packageProgram(),
  bunx: packageProgram(),
  uvx: packageProgram(),
  bun: (rest, input) => (rest[0] === "x" ? packageProgram()(rest.slice(1), input) : {}),
  pipx: (rest, input) => (rest[0] === "run" ? packageProgram()(rest.slice(1), input) : {}),
  uv,
  cargo,
  trap,
  eval: (rest) => ({ texts: [rest.join(" ")] }),
  command: (rest) =>
    /^-[pvV]*[vV]/.test(rest[0] ?? "") ? {} : { commands: [argumentsOf(rest, words("")).operands] },
  builtin: before(""),
  exec: before("-a"),
  nohup: before(""),
  time: before("-f --format -o --output"),
  timeout: before("-s --signal -k --kill-after", 1),
  nice: before("-n --adjustment"),
  ionice: before("-c -n --class --classdata"),
  chrt: before("-T -P -D", 1),
  taskset: before("", 1),
  stdbuf: before("-i -o -e --input --output --error"),
  setsid: before(""),
  setarch: before("", 1),
  unbuffer: before(""),
  rlwrap: before("-f -H -s"),
  caffeinate: before("-t -w"),
  chronic: before(""),
  xargs: before(
    "-I -L -n -P -d -E -s -a --max-args --max-procs --max-lines --delimiter --arg-file --replace"
  ),
  flock: optionText("-c --command", before("-w --timeout -E --conflict-exit-code", 1)),
  strace: before("-e -o -p -s -u -E -I -O -S -P -X -a -b"),
  ltrace: before("-e -o -p -s -u -l -n -a"),
  valgrind: before(""),
  gdb: before("-ex -x"),
  perf: after("record stat trace", "-e -o -F -p -g"),
  "xvfb-run": before("-n -e -f -s -w --server-args --server-num"),
  watch: joined("-n --interval"),
  entr: before(""),
  script: optionText("-c --command"),
  busybox: before(""),
  dotenv: before("-e -f -v"),
  "dotenv-cli": before("-e -f -v"),
  "cross-env": env,
  "cross-env-shell": env,
  concurrently: everyText("-n --names -c --prefix-colors --max-processes -m"),
  "npm-run-all": () => ({}),
  nodemon: optionText("-x --exec"),
  chokidar: optionText("-c --command"),
  poetry: after("run", "-C -P --directory"),
  pipenv: after("run"),
  pdm: after("run", "-p"),
  rye: after("run"),
  hatch: after("run"),
  bundle: after("exec"),
  conda: after("run", "-n --name -p --prefix"),
  mamba: after("run", "-n --name -p --prefix"),
  mise: after("exec x", "-C"),
  asdf: (rest) => (rest[0] === "exec" ? { commands: [rest.slice(1)] } : {}),
  direnv: (rest) => (rest[0] === "exec" ? { commands: [rest.slice(2)] } : {}),
  corepack: (rest) => (/^(npm|pnpm|yarn)$/.test(rest[0] ?? "") ? { commands: [rest] } : {})
}

export const runsOf = (program: string, rest: Arguments, input: string | undefined): Runs => {
  if (pythonNames.test(program)) return python(rest, input)
  return Object.hasOwn(wrappers, program) ? (wrappers[program]?.(rest, input) ?? {}) : {}
}
