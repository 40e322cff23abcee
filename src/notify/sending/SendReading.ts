import { Effect, Result } from "effect"
import type { FieldFault } from "#schemas/core/FieldFault.ts"
import { invalidField, type Problem } from "#schemas/core/Problem.ts"
import { AppConfig } from "#src/Config.ts"
import { isForThread, readInThread } from "#src/http/ReadInThread.ts"
import { Workers } from "#src/infra/workers/Workers.ts"
import type { ReadSend } from "#streams/notify/SendCall.ts"
import { readSendJson, type SendFields, type SendJson } from "#streams/notify/SendFields.ts"

const module = new URL("./SendThread.ts", import.meta.url)

/** The thread that reads long sends; the bodies of the MCP endpoint as well. */
export const sendThread = module

export const faulty = ({ field, text }: FieldFault): Problem => invalidField(field, text)

/** Reads the JSON of a send: small ones at once, large ones and those of many values in a thread. */
export const makeSendReader = Effect.gen(function* () {
  const workers = yield* Workers
  const { limits } = yield* AppConfig
  return (owner: string, { around, bytes }: SendJson): Effect.Effect<SendFields, Problem> => {
    if (!isForThread(bytes, limits))
      return Effect.fromResult(Result.mapError(readSendJson({ around, bytes }), faulty))
    return Effect.flatMap(
      readInThread(workers, limits, { owner, module, bytes, more: { around } }),
      (answer) => {
        // SendThread.ts is this module's other half.
        const read = answer as ReadSend
        return "fault" in read ? Effect.fail(faulty(read.fault)) : Effect.succeed(read.fields)
      }
    )
  }
})
