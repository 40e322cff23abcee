import { type SandboxAnswer, SandboxRefusal } from "../SandboxRequest.ts"

/** Told beside the words. Source: core.telegram.org/bots/api#responseparameters. */
export interface ResponseParameters {
  readonly retry_after?: number
  readonly migrate_to_chat_id?: number
}

/** A refusal in the form of the Bot API: `{ok: false, error_code, description, parameters?}`. */
export class TelegramRefusal extends SandboxRefusal {
  readonly parameters: ResponseParameters | undefined

  constructor(status: number, description: string, parameters?: ResponseParameters) {
    super(status, description)
    this.parameters = parameters
  }

  override get answer(): SandboxAnswer {
    const { message, parameters, status } = this
    return {
      status,
      json: {
        ok: false,
        error_code: status,
        description: message,
        ...(parameters !== undefined && { parameters })
      }
    }
  }
}

export const tooMany = (seconds: number): TelegramRefusal =>
  new TelegramRefusal(429, `Too Many Requests: retry after ${seconds}`, { retry_after: seconds })
