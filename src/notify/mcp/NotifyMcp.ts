import { Effect, Result, Schema } from "effect"
import { BadRequest, PayloadTooLarge, type Problem, UnsupportedMediaType } from "#schemas/core/Problem.ts"
import { McpApi } from "#schemas/notify/McpApi.ts"
import { sends, Sent } from "#schemas/notify/Message.ts"
import { CoveredProjects } from "#schemas/notify/Project.ts"
import { SendCall } from "#schemas/notify/SendCall.ts"
import { accessOf, Admission } from "#src/accounts/Admission.ts"
import { AppConfig } from "#src/Config.ts"
import { isJson } from "#src/http/JsonBody.ts"
import type { BlobSource } from "#src/infra/blobs/BlobFiles.ts"
import type { McpCaller, PlainBody } from "#src/infra/mcp/McpEndpoint.ts"
import { mcpRoutes } from "#src/infra/mcp/McpRoutes.ts"
import { makeServer } from "#streams/mcp/McpServer.ts"
import { tool } from "#streams/mcp/Tool.ts"
import { readSendCall, type ReadSend } from "#streams/notify/SendCall.ts"
import packageJson from "../../../package.json" with { type: "json" }
import { coverage, ProjectKeys } from "../projects/ProjectKeys.ts"
import {
  type ArrivingFiles,
  makeSubmit,
  replayHeader,
  sentAnswer,
  type Submitted
} from "../sending/Submission.ts"
import { faulty, sendThread } from "../sending/SendReading.ts"
import { callReaders } from "../sending/SendThread.ts"

const notJson = UnsupportedMediaType.of("Content-Type must be application/json")

/** Pieces that the event loop hashes and copies within some milliseconds. */
const pieceBytes = 512 * 1024

const sourceOf = (bytes: Uint8Array): BlobSource<never> => {
  let at = 0
  return () => {
    const piece = bytes.subarray(at, at + pieceBytes)
    at += piece.length
    return new Promise((resolve) =>
      setImmediate(resolve, Result.succeed(piece.length === 0 ? undefined : piece))
    )
  }
}

const makeSend = Effect.gen(function* () {
  const admission = yield* Admission
  const submit = yield* makeSubmit

  /** Puts the files of a call, whose fields are answered. */
  const gathered = (read: Extract<ReadSend, { fields: unknown }>) => (files: ArrivingFiles) =>
    Effect.gen(function* () {
      for (const [index, { bytes, contentType, filename }] of read.files.entries()) {
        const file = { filename, contentType, field: `attachments[${index}]`, declaredBytes: bytes.length }
        yield* files.put(file, sourceOf(bytes))
      }
      return read.fields
    })
  return {
    /** Takes one send from the key's minute; `setHeader` gets its state. */
    take: Effect.fnUntraced(function* ({ key, request }: McpCaller, setHeader?: McpCaller["setHeader"]) {
      const { headers, refusal } = yield* admission.takeFrom(sends, key, request)
      for (const [name, value] of Object.entries(headers)) setHeader?.(name, value)
      if (refusal !== undefined) return yield* refusal
    }),
    send: ({ idempotencyKey, key, request }: McpCaller, read: ReadSend): Effect.Effect<Submitted, Problem> =>
      "fault" in read
        ? Effect.fail(faulty(read.fault))
        : submit({ caller: key, request, idempotencyKey }, gathered(read))
  }
})

const instructions =
  "Sends notifications to the people who subscribed to a project: in their browsers and services. Say what happened " +
  "in `message`; put logs, reports and data into `body` or `attachments`, which are shown on a page of their own."

/** A fault of an upload, by the name that a call has for its id. */
const namedAsArgument = (problem: Problem): Problem =>
  problem._tag === "BadRequest" && problem.param?.startsWith("attachments[") === true
    ? BadRequest.of(problem.message.replace("attachments", "attachment_ids"), { param: "attachment_ids" })
    : problem

const makeTools = Effect.gen(function* () {
  const keys = yield* ProjectKeys
  const { send, take } = yield* makeSend
  const server = makeServer<McpCaller>({
    name: "signalbox-notify",
    title: "Signalbox notifications",
    version: packageJson.version,
    instructions,
    tools: [
      tool({
        name: "send_notification",
        title: "Send a notification",
        description:
          "Notifies the subscribers of one project, of several, or of all that the key covers. Answers how many get it and, " +
          "with a body or attachments, the address of its page. A repetition sends it again.",
        annotations: {
          readOnlyHint: false,
          destructiveHint: false,
          idempotentHint: false,
          openWorldHint: true
        },
        input: SendCall,
        output: Sent,
        read: (args) => Result.succeed(readSendCall(args)),
        handle: (read, caller: McpCaller) =>
          take(caller).pipe(
            Effect.andThen(
              "fault" in read
                ? Effect.fail(faulty(read.fault))
                : Effect.mapError(send(caller, read), namedAsArgument)
            ),
            Effect.tap(({ isReplay }) =>
              Effect.sync(() => (isReplay ? caller.setHeader(...replayHeader) : undefined))
            ),
            Effect.map(({ sent }) => ({ structured: sent }))
          )
      }),
      tool({
        name: "list_projects",
        title: "List projects",
        description: "Lists the projects that the key may send to, and tells the key's name and end.",
        annotations: {
          readOnlyHint: true,
          destructiveHint: false,
          idempotentHint: true,
          openWorldHint: false
        },
        input: Schema.Struct({}),
        output: CoveredProjects,
        handle: (_, { key }: McpCaller) => Effect.map(coverage(keys, key), (structured) => ({ structured }))
      })
    ]
  })
  return { send, server, take }
})

/** The tools of notifications, by the Model Context Protocol. Source: contract/notify#mcp. */
export const notifyMcpRoutes = Effect.gen(function* () {
  const { limits } = yield* AppConfig
  const { send, server, take } = yield* makeTools

  /** As REST's body. */
  const plain = Effect.fnUntraced(function* ({ bytes, contentType, read }: PlainBody, caller: McpCaller) {
    yield* take(caller, caller.setHeader)
    if (!isJson(contentType === "" ? undefined : contentType)) return yield* notJson
    if (bytes > limits.messageBodyBytes)
      return yield* PayloadTooLarge.of(`body: at most ${limits.messageBodyBytes} bytes`)
    // callReaders.plain made it.
    return sentAnswer(yield* send(caller, read as ReadSend))
  })
  return yield* mcpRoutes({
    paths: ["/mcp", "/api/v1/mcp"],
    server: () => server,
    // The key's general rate: each send counts on its own.
    access: accessOf(McpApi.endpoints.call, McpApi),
    maxBodyBytes: limits.messageCallBytes,
    tooLarge: `body: at most ${limits.messageCallBytes} bytes; larger files go to POST /api/v1/attachments`,
    callMillis: limits.messageCallMillis,
    plain,
    reading: { readers: callReaders, module: sendThread }
  })
})
