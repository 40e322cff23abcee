import type { ToolErrorCode } from "#schemas/agents/ToolCall.ts"

/** Why a tool gave no result. Its message goes to the model, so it says what to do instead where that helps. */
export class ToolFailure extends Error {
  readonly code: ToolErrorCode
  constructor(code: ToolErrorCode, message: string) {
    super(message)
    this.name = "ToolFailure"
    this.code = code
  }
}

/** Refused by this machine's rules, which the user's yes does not change. */
export const denied = (message: string): ToolFailure => new ToolFailure("denied", message)

/** The code of an error of the operating system, such as "ENOENT"; "" of any other. */
export const systemCode = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : ""
