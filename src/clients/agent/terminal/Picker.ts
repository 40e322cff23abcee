import { type Component, fuzzyFilter, matchesKey, type SelectItem, SelectList } from "@earendil-works/pi-tui"
import { fitted } from "./Lines.ts"
import type { Theme } from "./Theme.ts"

/** A choice: its texts are safe to print. */
export type Choice = SelectItem

interface PickerOptions {
  readonly title: string
  readonly choices: ReadonlyArray<Choice>
  readonly theme: Theme
  readonly rows: () => number
  /** undefined: nothing was chosen */
  readonly done: (value: string | undefined) => void
}

/** A list to choose from, narrowed by typing. */
export class Picker implements Component {
  readonly #options: PickerOptions
  #query = ""
  #list: SelectList

  constructor(options: PickerOptions) {
    this.#options = options
    this.#list = this.#listOf("")
  }

  invalidate(): void {
    this.#list.invalidate()
  }

  handleInput(data: string): void {
    if (matchesKey(data, "backspace")) return this.#narrow(this.#query.slice(0, -1))
    if (/^[\p{L}\p{N}\p{P}\p{S} ]+$/u.test(data)) return this.#narrow(this.#query + data)
    this.#list.handleInput(data)
  }

  render(width: number): Array<string> {
    const { theme, title } = this.#options
    const hint = "type to search · ↑ ↓ · Enter chooses · Esc leaves"
    return [
      theme.accent("─".repeat(width)),
      `${theme.bold(fitted(title, width - 2))} `,
      ...(this.#query === "" ? [] : [theme.accent(fitted(`search: ${this.#query}`, width))]),
      ...this.#list.render(width),
      theme.dim(fitted(hint, width)),
      theme.accent("─".repeat(width))
    ]
  }

  #narrow(query: string): void {
    this.#query = query
    this.#list = this.#listOf(query)
  }

  #listOf(query: string): SelectList {
    const { choices, done, rows, theme } = this.#options
    const found =
      query.trim() === ""
        ? [...choices]
        : fuzzyFilter([...choices], query, ({ description = "", label }) => `${label} ${description}`)
    const list = new SelectList(found, Math.max(3, Math.min(10, rows() - 10)), theme.select, {
      minPrimaryColumnWidth: 24,
      maxPrimaryColumnWidth: 48
    })
    list.onSelect = ({ value }) => done(value)
    list.onCancel = () => done(undefined)
    return list
  }
}
