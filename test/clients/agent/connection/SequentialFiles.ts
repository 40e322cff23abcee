import { unifiedDiff } from "#src/clients/agent/tools/UnifiedDiff.ts"
import type { Approval } from "#src/clients/agent/boundary/Approval.ts"

/** The answer of a call, as far as the model defines it. */
export type Answer = { readonly result: unknown } | { readonly code: string }

export type FileCall =
  | { readonly kind: "write"; readonly file: string; readonly content: string }
  | { readonly kind: "edit"; readonly file: string; readonly oldText: string; readonly newText: string }
  | { readonly kind: "read"; readonly file: string }
  | { readonly kind: "list" }
  | { readonly kind: "grep"; readonly word: string }
  | { readonly kind: "append"; readonly file: string; readonly content: string }
  | { readonly kind: "move"; readonly file: string; readonly to: string }

/** Shared by the names of one inode until one of them is replaced. */
interface Inode {
  readonly text: string
  names: number
}

const lines = (text: string): ReadonlyArray<string> => text.split("\n").slice(0, -1)

/**
 * The tools by the contract alone, one call after the other, in memory: files of text in one directory whose lines all end,
 * and hard links among them. `file` is the file's own name, however a call spells it.
 */
export class SequentialFiles {
  readonly #files = new Map<string, Inode>()

  constructor(files: ReadonlyMap<string, string>, links: ReadonlyMap<string, string>) {
    for (const [name, text] of files) this.#files.set(name, { text, names: 1 })
    for (const [name, of] of links) {
      const inode = this.#files.get(of)
      if (inode === undefined) continue
      inode.names++
      this.#files.set(name, inode)
    }
  }

  get texts(): Readonly<Record<string, string>> {
    return Object.fromEntries(
      [...this.#files]
        .map(([name, { text }]) => [name, text] as const)
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
    )
  }

  /** @param answer of the user, where the call asks */
  make(call: FileCall, answer: Approval): Answer {
    switch (call.kind) {
      case "write":
        return this.#write(call.file, call.content, answer)
      case "edit":
        return this.#edit(call, answer)
      case "read":
        return this.#read(call.file)
      case "list":
        return { result: { entries: Object.keys(this.texts), truncated: false } }
      case "grep":
        return this.#grep(call.word)
      case "append":
        return this.#append(call.file, call.content)
      case "move":
        return this.#move(call.file, call.to)
    }
  }

  #replace(name: string, text: string): void {
    const before = this.#files.get(name)
    if (before !== undefined) before.names--
    this.#files.set(name, { text, names: 1 })
  }

  #isRefused(name: string, answer: Approval): boolean {
    return (this.#files.get(name)?.names ?? 0) > 1 && answer === "no"
  }

  #write(name: string, text: string, answer: Approval): Answer {
    if (this.#isRefused(name, answer)) return { code: "denied" }
    const created = !this.#files.has(name)
    this.#replace(name, text)
    return { result: { bytes: Buffer.byteLength(text), created } }
  }

  #edit({ file, newText, oldText }: FileCall & { readonly kind: "edit" }, answer: Approval): Answer {
    if (this.#isRefused(file, answer)) return { code: "denied" }
    const text = this.#files.get(file)?.text
    const pieces = text?.split(oldText) ?? []
    if (text === undefined || pieces.length < 2) return { code: "not_found" }
    if (pieces.length > 2) return { code: "not_unique" }
    if (oldText === newText) return { code: "invalid_params" }
    const start = text.indexOf(oldText)
    const diff = unifiedDiff(file, text, [{ start, end: start + oldText.length, text: newText }])
    this.#replace(file, pieces.join(newText))
    return { result: { diff, replacements: 1 } }
  }

  #read(name: string): Answer {
    const text = this.#files.get(name)?.text
    if (text === undefined) return { code: "not_found" }
    return { result: { content: text, totalLines: lines(text).length, truncated: false } }
  }

  #grep(word: string): Answer {
    const matches = Object.entries(this.texts).flatMap(([name, text]) =>
      lines(text).flatMap((line, index) => (line.includes(word) ? [`${name}:${index + 1}: ${line}`] : []))
    )
    return { result: { matches, truncated: false } }
  }

  /** A command changes the inode, with all its names, and prints it. */
  #append(name: string, more: string): Answer {
    const before = this.#files.get(name)
    const after = { text: `${before?.text ?? ""}${more}`, names: before?.names ?? 1 }
    for (const [other, inode] of this.#files) if (inode === before) this.#files.set(other, after)
    this.#files.set(name, after)
    return { result: { exitCode: 0, output: after.text, truncated: false } }
  }

  /** A command that moves a file, but not over another name of it. */
  #move(name: string, to: string): Answer {
    const inode = this.#files.get(name)
    const isMoved = inode !== undefined && inode !== this.#files.get(to)
    const answer = { result: { exitCode: 0, output: isMoved ? "yes\n" : "no\n", truncated: false } }
    if (!isMoved) return answer
    const replaced = this.#files.get(to)
    this.#files.delete(name)
    if (replaced !== undefined) replaced.names--
    this.#files.set(to, inode)
    return answer
  }
}
