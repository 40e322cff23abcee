import { type Answer, answerOf } from "./Answer.ts"
import { type Call, onEnd, refuse, sendJson, type Shared } from "./Call.ts"
import { BadRequest, type ChatRequest, parseChatRequest } from "./ChatRequest.ts"
import { ChatStream } from "./ChatStream.ts"
import { codedAnswer } from "./coder/CodedAnswer.ts"
import { firstPieceMillisOf, pieceMillisOf, type PreparedChat, usageAfter } from "./PreparedChat.ts"
import type { Behaviour, SandboxModel } from "./SandboxModel.ts"
import { type PromptSize, sizeOf } from "./Tokens.ts"
import { completionJson, deltasOf, type Refusal } from "./Wire.ts"

const raw = (message: string) => ({ provider_name: "Sandbox", raw: message })

const refusals: { readonly [B in Behaviour]?: Refusal } = {
  fail: { status: 500, message: "Internal Server Error" },
  limit: {
    status: 429,
    message: "Provider returned error",
    metadata: raw("The sandbox is rate-limited; please retry shortly"),
    retryAfterSeconds: 1
  },
  "limit-silently": {
    status: 429,
    message: "Provider returned error",
    metadata: raw("The sandbox is rate-limited")
  },
  "refuse-payment": {
    status: 402,
    message: "Insufficient credits. Add more at the sandbox, which sells none"
  },
  embed: { status: 400, message: "This model makes embeddings; ask /embeddings" }
}

const refusalOf = (model: SandboxModel, request: ChatRequest, size: PromptSize): Refusal | undefined => {
  const known = refusals[model.behaviour]
  if (known !== undefined) return known
  if (size.images > 0 && !model.seesImages) {
    return { status: 404, message: "No endpoints found that support image input" }
  }
  if (request.tools.length > 0 && !model.callsTools) {
    return { status: 404, message: "No endpoints found that support tool use" }
  }
  return size.promptTokens > model.contextLength
    ? {
        status: 400,
        message:
          `This endpoint's maximum context length is ${model.contextLength} tokens. ` +
          `However, you requested about ${size.promptTokens} tokens`
      }
    : undefined
}

const answered = (
  { faults }: Shared,
  model: SandboxModel,
  request: ChatRequest,
  digest: string
): Answer | Refusal => {
  const answer =
    model.behaviour === "code" ? codedAnswer(model, request, faults) : answerOf(model, request, digest)
  return "status" in answer || answer.breaksAfter === undefined || request.stream
    ? answer
    : { status: 502, message: "The sandbox broke off while it generated" }
}

/** `POST /chat/completions`. Throws `BadRequest`. */
export const completeChat = (shared: Shared, call: Call): void => {
  const request = parseChatRequest(call.body)
  const model = shared.models.get(request.model)
  if (model === undefined) throw new BadRequest(`${request.model} is not a valid model ID`)
  const size = sizeOf(request, model)
  const answer = refusalOf(model, request, size) ?? answered(shared, model, request, call.digest)
  if ("status" in answer) {
    shared.account.failed(model.id)
    return refuse(call.response, answer)
  }
  const named = { id: `gen-${call.digest.slice(0, 24)}`, model: model.id }
  const prepared: PreparedChat = {
    shared,
    call,
    request,
    model,
    named,
    size,
    answer,
    deltas: deltasOf(answer)
  }
  if (model.behaviour === "stall") return stall(prepared)
  if (request.stream) new ChatStream(prepared).begin()
  else answerWhole(prepared)
}

/** The head of an answer alone, until the client gives up. */
const stall = ({ call, model, request, shared }: PreparedChat): void => {
  const type = request.stream ? "text/event-stream" : "application/json"
  call.response.writeHead(200, { "Content-Type": type })
  call.response.flushHeaders()
  onEnd(call.response, () => shared.account.failed(model.id))
}

const answerWhole = (prepared: PreparedChat): void => {
  const { answer, call, deltas, model, named, shared } = prepared
  const usage = usageAfter(prepared, deltas.length)
  onEnd(call.response, (isAborted) => shared.account.served(model.id, usage, isAborted))
  const send = (): void => sendJson(call.response, 200, completionJson(named, answer, usage, model.behaviour))
  const millis = firstPieceMillisOf(prepared) + (pieceMillisOf(prepared) ?? 0) * deltas.length
  if (millis === 0) return send()
  const timer = setTimeout(send, millis)
  call.response.once("close", () => clearTimeout(timer))
}
