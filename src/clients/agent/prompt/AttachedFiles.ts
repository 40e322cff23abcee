import { basename, extname } from "node:path"
import type { Client } from "../connection/Client.ts"
import { rootOf } from "../connection/ServerRest.ts"
import type { ToolOutcome } from "../tools/ToolCall.ts"
import type { ToolRunner } from "../tools/ToolRunner.ts"
import type { ImageReader } from "./ReadImage.ts"
import { agentLimits } from "#schemas/agents/AgentLimits.ts"
import { Schema } from "effect"
import { EntriesResult } from "#schemas/agents/ToolCall.ts"

const imageTypes: Readonly<Record<string, string>> = {
  ".png": "image/png",
  ".jpg": "image/jpeg",
  ".jpeg": "image/jpeg",
  ".webp": "image/webp",
  ".gif": "image/gif"
}

/** `@src/a.ts` or `@"a b.txt"`, at the start of a word. */
const mention = /(?<=^|[\s(])@(?:"([^"\n]+)"|([^\s"@]+))/gu
/** Marks that end a sentence rather than a name, where no such file is there. */
const trailing = /[.,;:!?)\]}]+$/u

export interface AttachParts {
  readonly runner: Pick<ToolRunner, "run">
  readonly readImage: ImageReader
  readonly upload: Client["upload"]
}

export interface Attached {
  /** the prompt as it was typed, with the files' text behind it */
  readonly text: string
  readonly images: ReadonlyArray<string>
  /** the mentioned files that could not be read */
  readonly problems: ReadonlyArray<string>
}

const readText = (runner: AttachParts["runner"], path: string): Promise<ToolOutcome> =>
  runner.run(
    { callId: "@", method: "fs.read", params: { path }, timeoutMs: 10_000 },
    {
      signal: AbortSignal.timeout(10_000),
      onOutput: () => undefined,
      approve: () => Promise.resolve("no")
    }
  )

type Found =
  | { readonly kind: "text"; readonly path: string; readonly text: string }
  | { readonly kind: "image"; readonly path: string; readonly id: string }
  | { readonly kind: "problem"; readonly text: string }
  /** no such file: the word is a word */
  | { readonly kind: "none" }

/** Such a word was not meant as a file: nothing is there, or a directory. */
const isNoFile = (code: string): boolean => code === "not_found" || code === "invalid_params"

const imageOf = async (parts: AttachParts, path: string, type: string): Promise<Found> => {
  const image = parts.readImage(path)
  if (!image.ok) return isNoFile(image.code) ? { kind: "none" } : { kind: "problem", text: image.problem }
  try {
    const id = await parts.upload({ name: basename(path), type, bytes: image.bytes })
    return { kind: "image", path, id }
  } catch (error) {
    return { kind: "problem", text: `@${path} was not uploaded: ${rootOf(error)}` }
  }
}

const fileOf = async (parts: AttachParts, path: string): Promise<Found> => {
  const type = imageTypes[extname(path).toLowerCase()]
  if (type !== undefined) return imageOf(parts, path, type)
  const read = await readText(parts.runner, path)
  if (!read.ok) {
    const { code, message } = read.error
    return isNoFile(code) ? { kind: "none" } : { kind: "problem", text: `@${path}: ${message}` }
  }
  const { content, truncated } = textOf(read.result)
  const note = truncated ? "\n[cut here: read the rest with the read tool]" : ""
  return { kind: "text", path, text: `<file path=${JSON.stringify(path)}>\n${content}${note}\n</file>` }
}

const textOf = (result: unknown): { readonly content: string; readonly truncated: boolean } => {
  const isRead = typeof result === "object" && result !== null && "content" in result && "truncated" in result
  return isRead
    ? { content: String(result.content), truncated: result.truncated === true }
    : { content: "", truncated: false }
}

/** A name is tried as it stands, and then without the marks behind it. */
const find = async (parts: AttachParts, quoted: string | undefined, bare: string): Promise<Found> => {
  const whole = await fileOf(parts, quoted ?? bare)
  const shorter = bare.replace(trailing, "")
  if (whole.kind !== "none" || quoted !== undefined || shorter === bare || shorter === "") return whole
  return fileOf(parts, shorter)
}

/**
 * Reads what a prompt names with `@`: files of the workspace as text behind the prompt, images uploaded. A word that
 * names no file stays a word. Nothing outside the workspace is read.
 */
export const attachFiles = async (text: string, parts: AttachParts): Promise<Attached> => {
  const mentions = new Map([...text.matchAll(mention)].map((match) => [match[0], match]))
  const texts: Array<string> = []
  const images: Array<string> = []
  const problems: Array<string> = []
  let bytes = Buffer.byteLength(text)
  for (const [, quoted, bare = ""] of mentions.values()) {
    const found = await find(parts, quoted, bare)
    if (found.kind === "problem") problems.push(found.text)
    else if (found.kind === "image") {
      if (images.length >= agentLimits.promptImages) {
        problems.push(`@${found.path}: a prompt has at most ${agentLimits.promptImages} images`)
      } else images.push(found.id)
    } else if (found.kind === "text") {
      bytes += Buffer.byteLength(found.text) + 2
      if (bytes > agentLimits.promptBytes)
        problems.push(`@${found.path}: the prompt would be too long with it`)
      else texts.push(found.text)
    }
  }
  return { text: [text, ...texts].join("\n\n"), images, problems }
}

const decode = Schema.decodeUnknownOption(EntriesResult)
const listMillis = 5_000

/** Files of the workspace to choose from, found the way the agent finds them; none where that fails. */
export const listFiles = async (runner: Pick<ToolRunner, "run">): Promise<ReadonlyArray<string>> => {
  const outcome = await runner.run(
    {
      callId: "@",
      method: "fs.glob",
      params: { pattern: "**/*", limit: agentLimits.globEntries },
      timeoutMs: listMillis
    },
    {
      signal: AbortSignal.timeout(listMillis),
      onOutput: () => undefined,
      approve: () => Promise.resolve("no")
    }
  )
  const found = outcome.ok ? decode(outcome.result) : undefined
  return found?._tag === "Some" ? found.value.entries : []
}
