import { Option } from "effect"
import { Flag } from "effect/cli"
import { thinkingLevels } from "#schemas/agents/ClientFrame.ts"
import { approvalKinds, type ApprovalKind } from "../boundary/Approval.ts"

/** Stands for "the latest of this workspace", where `--resume` is given without an id. */
export const latestSession = "latest"

export const url = Flag.String("url").pipe(
  Flag.withDescription("Address of the server; else SIGNALBOX_URL, else what `login` wrote"),
  Flag.optional
)
export const workspace = Flag.String("workspace").pipe(
  Flag.withAlias("C"),
  Flag.withMetavar("DIRECTORY"),
  Flag.withDescription("What the agent works in, and does not leave; default: this directory"),
  Flag.withDefault(".")
)

const kindsOf = (list: string): ReadonlyArray<ApprovalKind> =>
  list
    .split(",")
    .filter((word) => word !== "")
    .map((word) => {
      const kind = approvalKinds.find((known) => known === word.trim())
      if (kind === undefined) throw new RangeError(`${word} is none of ${approvalKinds.join(", ")}`)
      return kind
    })

const allow = Flag.String("allow").pipe(
  Flag.withMetavar("LIST"),
  Flag.withDescription(`With -p: what is not asked but allowed, of ${approvalKinds.join(", ")}`),
  Flag.withDefault(""),
  Flag.mapTryCatch(kindsOf, (error) => (error instanceof Error ? error.message : String(error)))
)

export const agentFlags = {
  url,
  workspace,
  allow,
  print: Flag.String("print").pipe(
    Flag.withAlias("p"),
    Flag.withMetavar("PROMPT"),
    Flag.withDescription("Work one prompt off and leave; what is piped in is put behind it"),
    Flag.optional
  ),
  mode: Flag.Literals("mode", ["text", "json"]).pipe(
    Flag.withDescription("With -p: the answer on stdout and progress on stderr, or one JSON object a line"),
    Flag.withDefault("text" as const)
  ),
  resume: Flag.String("resume").pipe(
    Flag.withOptionalValue(latestSession),
    Flag.withMetavar("SESSION"),
    Flag.withDescription("Go on with a session; without an id with the latest of this workspace"),
    Flag.optional
  ),
  continue: Flag.Boolean("continue").pipe(
    Flag.withDescription("The same as --resume without an id"),
    Flag.withDefault(false)
  ),
  model: Flag.String("model").pipe(
    Flag.withDescription("Id of a model or collection/SLUG; default: the server's"),
    Flag.optional
  ),
  thinking: Flag.Literals("thinking", thinkingLevels).pipe(
    Flag.withDescription("How much the model thinks"),
    Flag.optional
  ),
  budget: Flag.Finite("budget").pipe(
    Flag.withMetavar("USD"),
    Flag.withDescription("What the session may cost at most"),
    Flag.filter(
      (usd) => usd > 0,
      () => "--budget has to be above 0"
    ),
    Flag.optional
  ),
  network: Flag.Literals("network", ["ask", "off"]).pipe(
    Flag.withDescription("Whether commands may get the network after you said yes, or never"),
    Flag.optional
  ),
  sandbox: Flag.Literals("sandbox", ["auto", "off"]).pipe(
    Flag.withDescription("auto: the system's sandbox where there is one; off: every command asks"),
    Flag.optional
  ),
  wait: Flag.Int("wait").pipe(
    Flag.withMetavar("SECONDS"),
    Flag.withDescription("With -p: give up after so long without a connection"),
    Flag.withDefault(60)
  )
}

export interface AgentFlags {
  readonly url: Option.Option<string>
  readonly workspace: string
  readonly allow: ReadonlyArray<ApprovalKind>
  readonly print: Option.Option<string>
  readonly mode: "text" | "json"
  readonly resume: Option.Option<string>
  readonly continue: boolean
  readonly model: Option.Option<string>
  readonly thinking: Option.Option<(typeof thinkingLevels)[number]>
  readonly budget: Option.Option<number>
  readonly network: Option.Option<"ask" | "off">
  readonly sandbox: Option.Option<"auto" | "off">
  readonly wait: number
}

/** `--resume ses_…` as well as `--resume=ses_…`: an optional value of a flag stands behind `=` only. */
export const joinResume = (args: ReadonlyArray<string>): ReadonlyArray<string> =>
  args.flatMap((arg, index) => {
    if (arg.startsWith("ses_") && args[index - 1] === "--resume") return []
    const next = args[index + 1] ?? ""
    return arg === "--resume" && next.startsWith("ses_") ? [`--resume=${next}`] : [arg]
  })
