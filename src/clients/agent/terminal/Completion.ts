import {
  type AutocompleteItem,
  type AutocompleteProvider,
  type AutocompleteSuggestions,
  fuzzyFilter
} from "@earendil-works/pi-tui"
import { thinkingLevels } from "#schemas/agents/ClientFrame.ts"
import { commands } from "./Command.ts"
import { safeLine } from "./SafeText.ts"

interface CompletionSources {
  /** paths of the workspace's files, relative to its root; directories end in a slash */
  readonly files: () => Promise<ReadonlyArray<string>>
  /** ids of models */
  readonly models: () => Promise<ReadonlyArray<string>>
}

const suggestionLimit = 20
/** A list of files is good for so long: the agent makes new ones. */
const filesAgeMillis = 3_000

const commandItems = commands.map(({ argument, name, says }): AutocompleteItem => ({
  value: `/${name}`,
  label: `/${name}${argument === "" ? "" : ` ${argument}`}`,
  description: says
}))

/** The completions of the editor: commands behind `/`, files behind `@`. */
export class Completion implements AutocompleteProvider {
  readonly triggerCharacters = ["@"]
  readonly #sources: CompletionSources
  readonly #now: () => number
  #files: { readonly at: number; readonly paths: Promise<ReadonlyArray<string>> } | undefined

  constructor(sources: CompletionSources, now: () => number) {
    this.#sources = sources
    this.#now = now
  }

  async getSuggestions(
    lines: Array<string>,
    cursorLine: number,
    cursorColumn: number
  ): Promise<AutocompleteSuggestions | null> {
    const before = (lines[cursorLine] ?? "").slice(0, cursorColumn)
    const at = /(?:^|\s)(@\S*)$/.exec(before)?.[1]
    if (at !== undefined) return found(at, await this.#filesFor(at.slice(1)))
    if (cursorLine > 0 || !before.startsWith("/")) return null
    const argument = /^\/(model|thinking)\s+(\S*)$/.exec(before)
    if (argument === null) {
      return found(
        before,
        before.includes(" ") ? [] : commandItems.filter(({ value }) => value.startsWith(before))
      )
    }
    const [, name, typed = ""] = argument
    const values = name === "model" ? await this.#sources.models() : thinkingLevels
    return found(typed, matching(values, typed))
  }

  applyCompletion(
    lines: Array<string>,
    cursorLine: number,
    cursorCol: number,
    item: AutocompleteItem,
    prefix: string
  ): { lines: Array<string>; cursorLine: number; cursorCol: number } {
    const line = lines[cursorLine] ?? ""
    const start = line.slice(0, cursorCol - prefix.length)
    // Behind a directory one goes on typing.
    const inserted = `${item.value}${item.value.endsWith("/") ? "" : " "}`
    const rest = line.slice(cursorCol)
    return {
      lines: lines.with(cursorLine, start + inserted + (inserted.endsWith(" ") ? rest.trimStart() : rest)),
      cursorLine,
      cursorCol: start.length + inserted.length
    }
  }

  shouldTriggerFileCompletion(): boolean {
    return true
  }

  async #filesFor(typed: string): Promise<ReadonlyArray<AutocompleteItem>> {
    const now = this.#now()
    if (this.#files === undefined || now - this.#files.at > filesAgeMillis) {
      this.#files = { at: now, paths: this.#sources.files() }
    }
    const paths = await this.#files.paths.catch((): ReadonlyArray<string> => [])
    // A name that could not be typed safely, nor printed, is not offered.
    return matching(
      paths.filter((path) => safeLine(path) === path && !/\s/.test(path)),
      typed
    ).map((item) => ({
      ...item,
      value: `@${item.value}`
    }))
  }
}

const matching = (values: ReadonlyArray<string>, typed: string): ReadonlyArray<AutocompleteItem> =>
  (typed === "" ? [...values] : fuzzyFilter([...values], typed, (value) => value))
    .slice(0, suggestionLimit)
    .map((value) => ({ value, label: safeLine(value) }))

/** A complete word gets no suggestion: Enter is to send it. */
const found = (prefix: string, items: ReadonlyArray<AutocompleteItem>): AutocompleteSuggestions | null =>
  items.length === 0 || items.some(({ value }) => value === prefix) ? null : { prefix, items: [...items] }
