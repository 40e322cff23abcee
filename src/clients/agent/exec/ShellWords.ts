import { basename } from "node:path"

/** One simple command of a shell's text: its words with quotes taken off. */
export type SimpleCommand = ReadonlyArray<string>

/** How a command's text reads; only for deciding what to ask. Nothing relies on it being right. */
export interface ShellReading {
  readonly commands: ReadonlyArray<SimpleCommand>
  /** only words, `&&` and `;`: no redirection, pipe, substitution, variable or job */
  readonly isPlain: boolean
}

/** Inner texts that a shell would run: of `$( )` and backticks, also within double quotes. */
const substitutions = (text: string): ReadonlyArray<string> =>
  Array.from(text.matchAll(/\$\(([^()]*)\)|`([^`]*)`/g), ([, inner, ticked]) => inner ?? ticked ?? "")

const operators = new Set([";", "&", "|", "\n", "\r", "(", ")", "{", "}", "<", ">", "!"])

export const shells = new Set(["sh", "bash", "dash", "zsh", "ksh", "fish", "ash", "eval"])

class Reader {
  readonly commands: Array<Array<string>> = []
  isPlain = true
  #words: Array<string> = []
  #word: string | undefined

  /** the first word of the command that is being read */
  get first(): string {
    return basename(this.#words[0] ?? "")
  }
  char(text: string): void {
    this.#word = (this.#word ?? "") + text
  }
  endWord(): void {
    if (this.#word !== undefined) this.#words.push(this.#word)
    this.#word = undefined
  }
  endCommand(): void {
    this.endWord()
    if (this.#words.length > 0) this.commands.push(this.#words)
    this.#words = []
  }
}

/** Where the quote that opens at `at` closes; the end of the text when it does not. */
const quoteEnd = (text: string, at: number): number => {
  const quote = text[at]
  let end = at + 1
  while (end < text.length && text[end] !== quote) end += quote === '"' && text[end] === "\\" ? 2 : 1
  return Math.min(end, text.length)
}

/** Where the lines that a `<<` at `at` brings end; `at` where there is none. What it brings is no command, but for a shell. */
const hereEnd = (text: string, at: number, program: string): number => {
  const here = /^<<(-?)[ \t]*(['"]?)([\w.-]+)\2[^\n]*\n/.exec(text.slice(at, at + 512))
  const name = here?.[3]
  if (here === null || name === undefined || shells.has(program)) return at
  const start = at + here[0].length
  const end = text
    .slice(start - 1)
    .search(new RegExp(`\\n${here[1] === "-" ? "\\t*" : ""}${name.replaceAll(".", "\\.")}(\\n|$)`))
  return end < 0 ? text.length : start + end + name.length
}

/** Reads words, quotes and operators of POSIX shells, and of what they run in turn as far as that is written out. */
export const readShell = (text: string, depth = 0): ShellReading => {
  const reader = new Reader()
  for (let at = 0; at < text.length; at++) {
    const char = text[at] ?? ""
    if (char === "'" || char === '"') {
      const end = quoteEnd(text, at)
      reader.char(text.slice(at + 1, end).replace(/\\(["\\$`])/g, char === '"' ? "$1" : "\\$1"))
      at = end
    } else if (char === "\\") {
      if (text[at + 1] !== "\n") reader.char(text[at + 1] ?? "")
      at++
    } else if (text.startsWith("<<", at) && hereEnd(text, at, reader.first) !== at) {
      reader.isPlain = false
      at = hereEnd(text, at, reader.first)
      reader.endCommand()
    } else if (operators.has(char)) {
      const isAnd = char === "&" && text[at + 1] === "&"
      if (char !== ";" && char !== "\n" && !isAnd) reader.isPlain = false
      if (isAnd) at++
      reader.endCommand()
    } else if (/\s/.test(char)) reader.endWord()
    else reader.char(char)
  }
  reader.endCommand()
  const inner = depth < 4 ? substitutions(text).flatMap((one) => readShell(one, depth + 1).commands) : []
  return { commands: [...reader.commands, ...inner], isPlain: reader.isPlain && !/[$`]/.test(text) }
}
