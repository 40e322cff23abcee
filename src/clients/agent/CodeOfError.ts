import { ConfigurationProblem, UsageProblem } from "./config/UsageProblem.ts"
import { ConnectionClosed } from "./connection/ConnectionClosed.ts"
import { RequestRefused } from "./connection/ServerRest.ts"
import { codeOfClosed, exitCodes } from "./ExitCodes.ts"

const unauthorized = 401

/** The exit code for an error that ends the client. */
export const codeOfError = (error: unknown): number => {
  if (error instanceof ConnectionClosed) return codeOfClosed(error.reason)
  if (error instanceof RequestRefused && error.status === unauthorized) return exitCodes.keyRefused
  if (error instanceof ConfigurationProblem) return exitCodes.configuration
  return error instanceof UsageProblem ? exitCodes.usage : exitCodes.error
}
