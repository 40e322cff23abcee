import { Effect, Predicate } from "effect"
import type { ServiceUnavailable } from "#schemas/core/Problem.ts"
import type { KeyedExchange } from "#src/accounts/KeyedRoute.ts"
import type { StoredFile } from "#src/files/tree/Versions.ts"
import { HeaderBlock, type Headers } from "#src/front/HeaderBlock.ts"
import type { FileSent } from "#src/front/RawRoute.ts"
import { askedPlainly, byteAnswer, type ByteRequest, decisive } from "#src/http/ByteAnswer.ts"
import { contentDisposition } from "#src/http/ContentDisposition.ts"
import { anyBytes } from "#src/http/ContentType.ts"
import type { FileReads } from "./FileReads.ts"

interface SendOptions {
  readonly disposition: "inline" | "attachment"
  /** beside those of the file, or in their place; by lower-case names */
  readonly headers?: Readonly<Record<string, string>>
  /** receives the bytes that were handed to the socket, where any are sent */
  readonly sent?: FileSent
}

/** Types that a browser shows without running anything of this origin. Source: contract/files#bytes. */
const passive =
  /^(?:image\/(?!svg)[\w.+-]+|audio\/[\w.+-]+|video\/[\w.+-]+|application\/(?:pdf|json)|text\/plain)\s*(?:;|$)/i

/** Headers of all answers of a file; its bytes are never a page of this origin. */
const headersOf = (file: StoredFile, type: string, disposition: SendOptions["disposition"]) => ({
  "content-disposition": contentDisposition(disposition, file.name),
  "cache-control": "private, no-cache",
  "cross-origin-resource-policy": "same-origin",
  // One node keeps them; there is none whose confirmation could be awaited.
  "x-replica-count": "0",
  "x-required-replicas": "0",
  "x-replica-satisfied": "true",
  ...(passive.test(type) ? {} : { "content-security-policy": "sandbox; default-src 'none'" }),
  ...(file.encryptionKeyId === null ? {} : { "x-encryption-key-id": file.encryptionKeyId })
})

const answerTo = (request: ByteRequest, file: StoredFile, disposition: SendOptions["disposition"]) => {
  const contentType = file.isEncrypted ? anyBytes : file.mimeType
  return byteAnswer(request, {
    sizeBytes: file.sizeBytes,
    contentType,
    etag: `"${file.sha256}"`,
    lastModified: file.modifiedAt,
    headers: headersOf(file, contentType, disposition)
  })
}

const answerOf = ({ request }: KeyedExchange, file: StoredFile, { disposition }: SendOptions) =>
  answerTo({ method: request.method, header: (name) => request.header(name) }, file, disposition)

type Answer = ReturnType<typeof answerOf>

/** Headers of the whole of a file, put together once for those who ask for it while it is in memory. */
const wholes = {
  inline: new WeakMap<StoredFile, HeaderBlock>(),
  attachment: new WeakMap<StoredFile, HeaderBlock>()
}

const wholeHeaders = (file: StoredFile, { disposition }: SendOptions): HeaderBlock => {
  const known = wholes[disposition].get(file)
  if (known !== undefined) return known
  const made = new HeaderBlock(Object.entries(answerTo(askedPlainly, file, disposition).headers))
  wholes[disposition].set(file, made)
  return made
}

/** Whether no header of the request makes another answer to GET than the whole file. */
const isPlain = ({ request: { headers, method } }: KeyedExchange): boolean => {
  if (method !== "GET") return false
  for (let index = 0; index < headers.length; index += 2) if (decisive.has(headers[index] ?? "")) return false
  return true
}

const headersWith = ({ headers }: Answer, more: SendOptions["headers"]): Headers =>
  Object.entries({ ...headers, ...more })

/** An answer without bytes of the file: 304, 412, 416. */
const sendWithout = (exchange: KeyedExchange, answer: Answer, { headers }: SendOptions): void => {
  const { status, text } = answer
  exchange.send(status, headersWith(answer, headers), exchange.isBodiless ? undefined : text)
}

/** Answers with a file whose bytes are in memory: the whole, a part, or that it is the one that the client has. */
export const sendBuffer = (
  exchange: KeyedExchange,
  file: StoredFile,
  bytes: Buffer,
  options: SendOptions
): void => {
  const { headers: more, sent } = options
  if (more === undefined && sent === undefined && isPlain(exchange))
    return exchange.send(200, [wholeHeaders(file, options)], bytes)
  const answer = answerOf(exchange, file, options)
  if (answer.range === undefined) return sendWithout(exchange, answer, options)
  const { from, to } = answer.range
  let hasLeft = false
  if (sent !== undefined) exchange.onLeave(() => void (hasLeft = true))
  exchange.send(answer.status, headersWith(answer, more), bytes.subarray(from, to))
  sent?.(hasLeft ? 0 : to - from, !hasLeft)
}

/** The same for any file; `reads` finds its bytes. */
export const sendBytes = Effect.fnUntraced(function* (
  reads: FileReads["Service"],
  exchange: KeyedExchange,
  file: StoredFile,
  options: SendOptions
): Effect.fn.Return<void, ServiceUnavailable> {
  const answer = answerOf(exchange, file, options)
  if (answer.range === undefined) return sendWithout(exchange, answer, options)
  const content = yield* reads.open(file)
  if (!Predicate.isNumber(content)) return sendBuffer(exchange, file, content, options)
  const headers = headersWith(answer, options.headers)
  exchange.sendFile(answer.status, headers, { fd: content, ...answer.range }, options.sent)
})
