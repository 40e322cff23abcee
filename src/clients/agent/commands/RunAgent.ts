import { join } from "node:path"
import { Option } from "effect"
import packageJson from "../../../../package.json" with { type: "json" }
import { UsageProblem } from "../config/UsageProblem.ts"
import { AgentClient } from "../connection/AgentClient.ts"
import type { Approve } from "../connection/Client.ts"
import { fetchGatewayInfo } from "../connection/ServerRest.ts"
import { exitCodes } from "../ExitCodes.ts"
import { JsonReporter } from "../print/JsonReporter.ts"
import type { Reporter } from "../print/Reporter.ts"
import { runPrint, readPiped } from "../print/RunPrint.ts"
import { TextReporter } from "../print/TextReporter.ts"
import { attachFiles, listFiles } from "../prompt/AttachedFiles.ts"
import { type AgentFlags, latestSession } from "./Flags.ts"
import { openWorkplace, type Workplace } from "./OpenWorkplace.ts"

const { version } = packageJson

/** Without a user to ask, a need not allowed beforehand is refused. */
const allowing =
  (allowed: AgentFlags["allow"]): Approve =>
  ({ kinds }) =>
    Promise.resolve(kinds.every((kind) => allowed.includes(kind)) ? "once" : "no")

const sessionOf = (flags: AgentFlags, { journals, server, workspace }: Workplace): string | undefined => {
  const wanted = flags.continue ? Option.some(latestSession) : flags.resume
  if (Option.isNone(wanted)) return undefined
  if (wanted.value !== latestSession) {
    if (/^ses_[0-9A-Za-z]{22}$/.test(wanted.value)) return wanted.value
    throw new UsageProblem(`${wanted.value} is not the id of a session. List them: signalbox-agent sessions`)
  }
  const [latest] = journals.known({ url: server.url, root: workspace.root })
  if (latest !== undefined) return latest.id
  throw new UsageProblem(`No session of ${workspace.root} at ${server.url} is known on this machine`)
}

const makeClient = (flags: AgentFlags, workplace: Workplace, isInteractive: boolean): AgentClient => {
  const { journals, runner, server, workspace } = workplace
  const resume = sessionOf(flags, workplace)
  const waitMillis = flags.wait * 1_000
  return new AgentClient({
    server,
    workspace,
    runner,
    journals,
    withHistory: isInteractive,
    approve: isInteractive ? () => Promise.resolve("no") : allowing(flags.allow),
    ...(isInteractive ? {} : { patience: { firstMillis: waitMillis, lostMillis: waitMillis } }),
    ...(resume === undefined ? {} : { resume }),
    ...Option.match(flags.model, { onNone: () => ({}), onSome: (model) => ({ model }) }),
    ...Option.match(flags.thinking, { onNone: () => ({}), onSome: (thinkingLevel) => ({ thinkingLevel }) }),
    ...Option.match(flags.budget, { onNone: () => ({}), onSome: (budgetUsd) => ({ budgetUsd }) })
  })
}

/** The first Ctrl-C ends the prompt, the second the program. */
const stopOnSignals = (): AbortSignal => {
  const stop = new AbortController()
  const take = (code: number) => (): void => {
    // oxlint-disable-next-line unicorn/no-process-exit
    if (stop.signal.aborted) process.exit(code)
    stop.abort(code)
  }
  process.on("SIGINT", take(exitCodes.interrupted))
  process.on("SIGTERM", take(exitCodes.terminated))
  process.on("SIGHUP", take(exitCodes.terminated))
  // The reader of the output has closed it.
  process.stdout.on("error", () => stop.abort(exitCodes.error))
  return stop.signal
}

const reporterOf = (flags: AgentFlags, { server, workspace }: Workplace): Reporter => {
  const write = (text: string): void => {
    process.stdout.write(text)
  }
  if (flags.mode === "json")
    return new JsonReporter(write, { url: server.url, workspace, client: { version } })
  return new TextReporter({
    answer: write,
    progress: (text) => process.stderr.write(text),
    isTerminal: process.stdout.isTTY
  })
}

const print = async (flags: AgentFlags, typed: string, piped: string): Promise<number> => {
  const text = [typed, piped].filter((part) => part.trim() !== "").join("\n\n")
  const isResumed = flags.continue || Option.isSome(flags.resume)
  if (text === "" && !isResumed) throw new UsageProblem("There is nothing to do: the prompt is empty")
  const workplace = await openWorkplace(workplaceOptions(flags), process.env)
  const client = makeClient(flags, workplace, false)
  const reporter = reporterOf(flags, workplace)
  const prompt = async (): Promise<{ text: string; images: ReadonlyArray<string> }> => {
    // Only typed text names files: piped text may come from anywhere.
    const attached = await attachFiles(typed, {
      runner: workplace.runner,
      readImage: workplace.readImage,
      upload: (image) => client.upload(image)
    })
    for (const problem of attached.problems) reporter.note(problem)
    const parts = [attached.text, piped].filter((part) => part.trim() !== "")
    return { text: parts.join("\n\n"), images: attached.images }
  }
  const code = await runPrint({
    client,
    reporter,
    stop: stopOnSignals(),
    prompt: text === "" ? undefined : prompt
  })
  await workplace.runner.close()
  return code
}

const interact = async (
  flags: AgentFlags,
  runTerminal: typeof import("../terminal/RunTerminal.ts").runTerminal
): Promise<number> => {
  const workplace = await openWorkplace(workplaceOptions(flags), process.env)
  const { runner, server, stateDir, workspace } = workplace
  const client = makeClient(flags, workplace, true)
  const code = await runTerminal(client, {
    version,
    workspace,
    historyFile: join(stateDir, "history"),
    permissions: runner.approvals,
    models: async () => (await fetchGatewayInfo(server)).models,
    files: () => listFiles(runner),
    attach: (text) =>
      attachFiles(text, { runner, readImage: workplace.readImage, upload: (image) => client.upload(image) }),
    environment: process.env
  })
  await runner.close()
  return code
}

const workplaceOptions = (flags: AgentFlags): Parameters<typeof openWorkplace>[0] => ({
  workspace: flags.workspace,
  ...Option.match(flags.url, { onNone: () => ({}), onSome: (url) => ({ url }) }),
  ...Option.match(flags.network, { onNone: () => ({}), onSome: (network) => ({ network }) }),
  ...Option.match(flags.sandbox, { onNone: () => ({}), onSome: (sandbox) => ({ sandbox }) })
})

/** Gives the exit code. Throws `UsageProblem`. */
export const runAgent = async (flags: AgentFlags): Promise<number> => {
  const typed = Option.getOrUndefined(flags.print)
  const piped = await readPiped()
  if (typed !== undefined || piped !== "") return print(flags, typed ?? "", piped)
  // Loaded only for a terminal: it is half of the program.
  const { noTerminal, runTerminal } = await import("../terminal/RunTerminal.ts")
  const streams = { input: process.stdin.isTTY, output: process.stdout.isTTY }
  const problem = noTerminal(process.env, streams)
  if (problem !== undefined) throw new UsageProblem(problem)
  return interact(flags, runTerminal)
}
