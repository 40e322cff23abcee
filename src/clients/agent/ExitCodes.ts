import type { PromptDone } from "#schemas/agents/ServerFrame.ts"
import { exitCodes as common } from "../ExitCodes.ts"
import type { ClosedReason } from "./connection/ClientEvents.ts"

/** The exit codes of the client. Scripts rely on these: they do not change. */
export const exitCodes = {
  completed: common.done,
  error: common.failed,
  usage: common.usage,
  aborted: 3,
  /** completed, but at least one tool call was refused on this machine */
  denied: 4,
  budget: 5,
  maxTurns: 6,
  noConnection: common.serverAway,
  keyRefused: common.keyRefused,
  configuration: common.configuration,
  interrupted: common.interrupted,
  terminated: common.terminated
} as const

export const exitCodesText = `Exit codes: 0 completed; 1 error; 2 called wrongly; 3 aborted from elsewhere; 4 completed, but this machine refused at least one tool call; 5 budget used up; 6 too many turns; 69 no connection, or client and server do not understand one another; 77 the key or its account is refused; 78 no server is known, or the configuration is none; 130 Ctrl-C; 143 SIGTERM.`

export const codeOfDone = ({ status, toolCallsDenied }: PromptDone): number => {
  switch (status) {
    case "completed":
      return toolCallsDenied > 0 ? exitCodes.denied : exitCodes.completed
    case "aborted":
      return exitCodes.aborted
    case "budget":
      return exitCodes.budget
    case "max_turns":
      return exitCodes.maxTurns
    case "error":
      return exitCodes.error
  }
}

export const codeOfClosed = (reason: ClosedReason): number => {
  switch (reason) {
    case "bye":
      return exitCodes.completed
    case "superseded":
    case "ended":
      return exitCodes.aborted
    case "locked":
    case "refused":
      return exitCodes.error
    case "revoked":
    case "key_refused":
    case "no_credits":
      return exitCodes.keyRefused
    case "no_gateway":
    case "unreachable":
    case "not_understood":
      return exitCodes.noConnection
  }
}
