import { isMeetAnswer, type MeetAnswer, meetByParent } from "./Barrier.ts"
import { openHere, type HostAnswer, type HostCommand, type SuiteHost } from "./SuiteHost.ts"
import { loadSuite } from "./Suites.ts"

/** The process behind `openApart`: it holds a suite's stage and runs its cases. */

let host: SuiteHost | undefined

const obey = async (command: HostCommand): Promise<HostAnswer> => {
  if (command.do === "open") {
    host = await openHere(await loadSuite(command.suite), command.options)
    return { ok: true }
  }
  if (host === undefined) throw new Error("the suite is not open")
  if (command.do === "run") {
    const meet = command.sideBySide ? meetByParent : undefined
    return { ok: true, run: await host.run(command.case, command.round, meet) }
  }
  await host.leave()
  return { ok: true }
}

// The harness decides what an interrupt ends; a terminal sends it to every process.
let isInterrupted = false
process.on("SIGINT", () => (isInterrupted = true))
process.once("disconnect", () => process.exit(1))

process.on("message", (command: HostCommand | MeetAnswer) => {
  // For the case that waits for it.
  if (isMeetAnswer(command)) return
  const answer = (text: HostAnswer): void =>
    void process.send?.(text, () => {
      if (command.do === "leave") process.exit(0)
    })
  obey(command).then(answer, (error: unknown) => {
    // A fault that an interrupt brings is none.
    if (!isInterrupted) console.error(error)
    answer({ ok: false, message: error instanceof Error ? error.message : String(error) })
  })
})
