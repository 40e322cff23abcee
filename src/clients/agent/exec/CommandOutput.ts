import { randomBytes } from "node:crypto"
import { closeSync, constants, openSync, writeSync } from "node:fs"
import { join } from "node:path"
import { StringDecoder } from "node:string_decoder"
import { agentLimits } from "#schemas/agents/AgentLimits.ts"

/** A whole output is kept up to here. */
const maxSpilledBytes = 64 * 1024 * 1024
/** So much is kept in memory before it is cut back to what a result may have. */
const slackCharacters = 4 * agentLimits.textBytes

type Stream = "stdout" | "stderr"

/** The longest end of a text within the caps, cut at a line where there is one. */
export const tailOf = (text: string): string => {
  const bytes = Buffer.from(text)
  let start = Math.max(0, bytes.length - agentLimits.textBytes)
  while (start < bytes.length && ((bytes[start] ?? 0) & 0xc0) === 0x80) start++
  const tail = bytes.toString("utf8", start)
  const lines = (start > 0 ? tail.slice(tail.indexOf("\n") + 1) || tail : tail).split("\n")
  const hasEnd = lines.at(-1) === ""
  const most = agentLimits.textLines + (hasEnd ? 1 : 0)
  return lines.slice(-most).join("\n")
}

/**
 * The output of a command, stdout and stderr in the order they came. Characters that are cut between two pieces are put
 * together. The end is kept in memory; a longer output goes to a file as a whole.
 */
export class CommandOutput {
  readonly #directory: string
  readonly #tell: (stream: Stream, data: string) => void
  readonly #decoders = { stdout: new StringDecoder("utf8"), stderr: new StringDecoder("utf8") }
  #text = ""
  #lines = 0
  #fd: number | undefined
  #path: string | undefined
  #spilled = 0

  constructor(directory: string, tell: (stream: Stream, data: string) => void) {
    this.#directory = directory
    this.#tell = tell
  }

  push(stream: Stream, data: Buffer): void {
    this.#add(stream, this.#decoders[stream].write(data))
  }

  /** Flushes cut characters; then the end of the text, and the file of the whole if that is not all. */
  end(): { readonly output: string; readonly truncated: boolean; readonly fullOutputPath?: string } {
    this.#add("stdout", this.#decoders.stdout.end())
    this.#add("stderr", this.#decoders.stderr.end())
    if (this.#fd !== undefined) closeSync(this.#fd)
    this.#fd = undefined
    const output = tailOf(this.#text)
    return this.#path === undefined
      ? { output, truncated: false }
      : { output, truncated: true, fullOutputPath: this.#path }
  }

  #add(stream: Stream, text: string): void {
    if (text === "") return
    this.#tell(stream, text)
    this.#text += text
    for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) this.#lines++
    if (this.#path !== undefined) this.#spill(text)
    else if (this.#lines >= agentLimits.textLines || this.#text.length > agentLimits.textBytes / 4)
      this.#openWhenOver()
    if (this.#text.length > slackCharacters) this.#text = tailOf(this.#text)
  }

  #openWhenOver(): void {
    if (tailOf(this.#text) === this.#text) return
    const path = join(this.#directory, `${randomBytes(8).toString("hex")}.log`)
    const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants
    this.#fd = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
    this.#path = path
    this.#spill(this.#text)
  }

  #spill(text: string): void {
    if (this.#fd === undefined || this.#spilled >= maxSpilledBytes) return
    const bytes = Buffer.from(text)
    this.#spilled += bytes.length
    for (let at = 0; at < bytes.length;) at += writeSync(this.#fd, bytes, at)
  }
}
