import type { ApprovalKind } from "../boundary/Approval.ts"
import { gitKinds } from "./GitNeeds.ts"
import { packageKinds } from "./PackageNeeds.ts"
import { argumentsOf, hasOption, words } from "./ProgramArguments.ts"

type Kinds = ReadonlyArray<ApprovalKind>
const none: Kinds = []
const network: Kinds = ["network"]

/** The surroundings of a command. */
export interface Surroundings {
  /** a job runs beside it: a local service it reaches may be in the same sandbox */
  readonly hasJobs: boolean
}

/** Ask a server for something. */
const clients = words(
  "curl wget http https xh aria2c ssh sftp telnet ftp ping ping6 traceroute mtr dig nslookup host whois nmap lynx w3m psql pg_dump pg_restore pg_isready createdb dropdb mysql mysqldump mariadb redis-cli mongosh mongo clickhouse-client nc ncat netcat socat ssh-keyscan ssh-copy-id ansible ansible-playbook hub vercel netlify fly flyctl heroku firebase doctl eksctl yt-dlp lftp"
)
/** Clients of a service with commands that need no network. */
const offline: Readonly<Record<string, ReadonlySet<string>>> = {
  gh: words("help version config alias completion"),
  glab: words("help version config alias completion"),
  aws: words("help configure"),
  gcloud: words("help config version info topic"),
  az: words("help config version"),
  kubectl: words("help config completion kustomize plugin options"),
  helm: words("help template lint create package version completion env"),
  terraform: words("help fmt validate version console graph output show"),
  tofu: words("help fmt validate version console graph output show"),
  pulumi: words("help version config"),
  wrangler: words("help types dev"),
  ngrok: words("help config version")
}
/** Listen on a Unix socket, or are reached by one. */
const sockets = words(
  "tsx tmux screen pm2 pm2-runtime pg_ctl postgres mysqld mariadbd supervisord supervisorctl watchman Xvfb xvfb-run dbus-run-session nix-daemon"
)

const onlyAsks = words("-h --help --version -V -v version help")
const local = /^(\w+:\/\/)?([^/@]*@)?(localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[::1?\]|::1)([:/]|$)/
const place = /^\w+:\/\/|^[\w.-]+\.[a-z]{2,}([:/]|$)|^\$/i

/** Whether all that it reaches is on this machine, or is a file. */
const isLocal = (rest: ReadonlyArray<string>): boolean => {
  const hosts = rest.filter((word) => local.test(word) || place.test(word))
  return hosts.length > 0 && hosts.every((word) => local.test(word))
}
const areFiles = (rest: ReadonlyArray<string>): boolean => {
  const places = rest.filter((word) => /^\w+:\/\//.test(word))
  return places.length > 0 && places.every((word) => word.startsWith("file://"))
}

const clientKinds = (program: string, rest: ReadonlyArray<string>, { hasJobs }: Surroundings): Kinds => {
  if (rest.length === 1 && onlyAsks.has(rest[0] ?? "")) return none
  if (program === "ssh" && rest.includes("-G")) return none
  if (
    program === "socat" &&
    rest.some((word) => /^unix/i.test(word)) &&
    !rest.some((word) => /^(tcp|udp|openssl)/i.test(word))
  )
    return ["sockets"]
  if (/^(nc|ncat|netcat)$/.test(program)) {
    if (rest.some((word) => /^-[a-zA-Z]*U/.test(word))) return ["sockets"]
    if (rest.some((word) => /^-[a-zA-Z]*l/.test(word))) return none
  }
  if ((program === "curl" || program === "wget") && areFiles(rest)) return none
  // A redis-cli or psql without a host asks this machine.
  const asksThis =
    isLocal(rest) || (/^(redis-cli|psql|pg_isready)$/.test(program) && !rest.some((word) => place.test(word)))
  return hasJobs && asksThis ? none : network
}

const copies = (rest: ReadonlyArray<string>): Kinds =>
  argumentsOf(rest, words("-e --rsh --exclude --include --files-from -P -i -o -F -J -S")).operands.some(
    (word) => /^[^/]+:|^rsync:\/\//.test(word)
  )
    ? network
    : none

const historyOf: Readonly<Record<string, ReadonlySet<string>>> = {
  hg: words(
    "commit ci merge rebase tag update up checkout co import strip backout graft histedit shelve unshelve bookmark pull push add remove"
  ),
  svn: words("commit ci import copy cp update up checkout co switch merge add delete move"),
  jj: words("commit ci describe desc new squash bookmark rebase abandon edit split undo restore git import"),
  sl: words("commit ci goto rebase amend pull push bookmark import"),
  fossil: words("commit ci update merge tag import sync push pull")
}
const remoteOf = words("pull push sync clone in incoming out outgoing")
const svnRemote = words("commit ci import update up checkout co switch log list ls info")

const otherHistory = (program: string, rest: ReadonlyArray<string>): Kinds => {
  const [name = "", second = ""] = argumentsOf(rest, words("-R -m")).operands
  const isRemote =
    program === "svn"
      ? svnRemote.has(name)
      : program === "jj"
        ? name === "git" && /^(fetch|push|clone)$/.test(second)
        : remoteOf.has(name)
  return [
    ...(isRemote ? network : none),
    ...(historyOf[program]?.has(name) === true ? (["commit"] as const) : none)
  ]
}

/** Programs that set up hooks, make commits or publish, by their first operand; "" is the program alone. */
const others: Readonly<Record<string, Readonly<Record<string, Kinds>>>> = {
  husky: { "": ["repository"], init: ["repository"], install: ["repository"], add: ["repository"] },
  "simple-git-hooks": { "": ["repository"] },
  lefthook: { install: ["repository"], uninstall: ["repository"], add: ["repository"] },
  "pre-commit": { install: ["repository"], uninstall: ["repository"], autoupdate: network },
  overcommit: { "--install": ["repository"] },
  "lint-staged": { "": ["commit"] },
  lerna: { version: ["commit"], publish: ["network", "commit"] },
  changeset: { tag: ["commit"], publish: ["network", "commit"] },
  "standard-version": { "": ["commit"] },
  "release-it": { "": ["network", "commit"] },
  "semantic-release": { "": ["network", "commit"] },
  openssl: { s_client: network, ocsp: network },
  vcpkg: { install: ["network", "install"] },
  conan: { install: ["network", "install"] },
  clickhouse: { client: network }
}

const isBuildFetch = /^(dependency:|deploy$|release:|versions:|publish|wrapper$|--refresh-dependencies$)/

const ghKinds = (rest: ReadonlyArray<string>): Kinds =>
  /^pr checkout$/.test(rest.slice(0, 2).join(" ")) ? ["network", "commit"] : network

/** The needs of a program itself; programs it runs in turn are judged on their own. */
export const programKinds = (program: string, rest: ReadonlyArray<string>, around: Surroundings): Kinds => {
  if (program === "git") return gitKinds(rest)
  if (clients.has(program)) return clientKinds(program, rest, around)
  if (program === "rsync" || program === "scp") return copies(rest)
  if (sockets.has(program)) return rest.length === 1 && onlyAsks.has(rest[0] ?? "") ? none : ["sockets"]
  if (Object.hasOwn(historyOf, program)) return otherHistory(program, rest)
  if (/^(mvnw?|gradlew?)$/.test(program)) return rest.some((word) => isBuildFetch.test(word)) ? network : none
  const { operands, options } = argumentsOf(
    rest,
    words("--repo -R -C -n --namespace --context --kubeconfig --profile --region -f")
  )
  const first = operands[0] ?? ""
  const quiet = Object.hasOwn(offline, program) ? offline[program] : undefined
  if (quiet !== undefined) {
    const isAsking = rest.length === 0 || hasOption(options, words("--help --version"))
    if (isAsking || quiet.has(first) || (first === "version" && options.includes("--client"))) return none
    return program === "gh" ? ghKinds(operands) : network
  }
  const known = Object.hasOwn(others, program) ? others[program] : undefined
  if (known !== undefined)
    return (Object.hasOwn(known, first) ? known[first] : known[options[0] ?? ""]) ?? none
  return packageKinds(program, rest) ?? none
}
