import { Result } from "effect"
import type { FieldFault } from "#schemas/core/FieldFault.ts"
import { isJsonRecord } from "#schemas/core/JsonRecord.ts"
import { readAddress } from "./Addresses.ts"
import { type BounceType, bounceTypes } from "./BounceType.ts"
import { readJson } from "./MailJson.ts"

/** A bounce, as its sender's own software tells of it. */
export interface BounceFields {
  readonly messageId: string
  /** in lower case */
  readonly recipient: string
  readonly type: BounceType
  readonly detail: string | null
}

/** Characters. */
const bounceDetailMax = 500

const fault = (field: string, text: string): Result.Result<never, FieldFault> => Result.fail({ field, text })

/** The id of a mail, or its `Message-ID` with or without angle brackets. */
const messageIdForm = /^<?(eml_[0-9A-Za-z]{22})(?:@[^\s<>@]{1,253})?>?$/

export const mailIdOf = (messageId: string): string | undefined => messageIdForm.exec(messageId)?.[1]

const detailOf = (detail: unknown): Result.Result<string | null, FieldFault> => {
  if (detail === undefined || detail === null) return Result.succeed(null)
  if (typeof detail !== "string") return fault("detail", "expected text")
  return detail.length > bounceDetailMax
    ? fault("detail", `at most ${bounceDetailMax} characters`)
    : Result.succeed(detail)
}

/** Unknown fields are ignored, null is absent. Source: contract/mail#bounces. */
export const readBounce = (bytes: Uint8Array): Result.Result<BounceFields, FieldFault> => {
  const json = readJson(bytes)
  if (Result.isFailure(json)) return Result.fail(json.failure)
  if (!isJsonRecord(json.success)) return fault("body", "expected an object")
  const { detail, message_id: given, recipient, type } = json.success
  if (typeof given !== "string") return fault("message_id", "is required")
  const messageId = mailIdOf(given)
  if (messageId === undefined) return fault("message_id", "expected eml_… or a Message-ID of this server")
  if (typeof recipient !== "string") return fault("recipient", "is required")
  const mailbox = readAddress("recipient", recipient)
  if (Result.isFailure(mailbox)) return Result.fail(mailbox.failure)
  const known = bounceTypes.find((one) => one === type)
  if (known === undefined) return fault("type", "expected hard, soft or complaint")
  return Result.map(detailOf(detail), (text) => ({
    messageId,
    recipient: mailbox.success.address.toLowerCase(),
    type: known,
    detail: text
  }))
}
