import { Redacted } from "effect"
import { accessSync, constants } from "node:fs"
import { resolve } from "node:path"

const units: Readonly<Record<string, number>> = { "": 1, b: 1, kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3 }

/** The largest file that any setting may allow; more would not fit a JavaScript number of bytes with room to count. */
const maximumSizeBytes = 1024 ** 4

/** Reads typed values out of an environment and collects what is wrong with it, instead of stopping at the first. */
export class EnvironmentReader {
  readonly faults: Array<{ readonly variable: string; readonly fault: string }> = []
  private readonly environment: Readonly<Record<string, string | undefined>>

  constructor(environment: Readonly<Record<string, string | undefined>>) {
    this.environment = environment
  }

  /** The trimmed value; undefined when unset or empty. */
  text(variable: string): string | undefined {
    const value = this.environment[variable]?.trim()
    return value === "" ? undefined : value
  }

  parsed<A>(variable: string, parse: (text: string) => A | undefined, fault: string): A | undefined {
    const text = this.text(variable)
    if (text === undefined) return undefined
    const value = parse(text)
    if (value === undefined) this.faults.push({ variable, fault })
    return value
  }

  integer(
    variable: string,
    options: { readonly minimum: number; readonly maximum: number; readonly otherwise: number }
  ): number {
    const { maximum, minimum, otherwise } = options
    const parse = (text: string): number | undefined =>
      /^\d{1,10}$/.test(text) && Number(text) >= minimum && Number(text) <= maximum ? Number(text) : undefined
    return this.parsed(variable, parse, `takes a whole number from ${minimum} to ${maximum}`) ?? otherwise
  }

  matching(variable: string, pattern: RegExp, fault: string): string | undefined {
    return this.parsed(variable, (text) => (pattern.test(text) ? text : undefined), fault)
  }

  url(variable: string, protocols: ReadonlyArray<string>): string | undefined {
    const parse = (text: string): string | undefined => {
      const url = URL.canParse(text) ? new URL(text) : undefined
      return url !== undefined && protocols.includes(url.protocol) && url.hostname !== "" ? text : undefined
    }
    return this.parsed(
      variable,
      parse,
      `takes a URL that starts with ${protocols.map((_) => `${_}//`).join(" or ")}`
    )
  }

  secret(variable: string): Redacted.Redacted | undefined {
    const text = this.text(variable)
    return text === undefined ? undefined : Redacted.make(text, { label: variable })
  }

  secretUrl(variable: string, protocols: ReadonlyArray<string>): Redacted.Redacted | undefined {
    const url = this.url(variable, protocols)
    return url === undefined ? undefined : Redacted.make(url, { label: variable })
  }

  /** Bytes, or a size like `100MB` (1 MB = 1024 * 1024 bytes). */
  size(variable: string, otherwise: number): number {
    const parse = (text: string): number | undefined => {
      const [, digits, unit = ""] = /^(\d{1,13}(?:\.\d{1,3})?)\s*([A-Za-z]*)$/.exec(text) ?? []
      const factor = units[unit.toLowerCase()]
      if (digits === undefined || factor === undefined) return undefined
      const bytes = Math.floor(Number(digits) * factor)
      return bytes >= 1 && bytes <= maximumSizeBytes ? bytes : undefined
    }
    return this.parsed(variable, parse, "takes a size like 104857600 or 100MB, at most 1024GB") ?? otherwise
  }

  list<A extends string>(
    variable: string,
    parse: (item: string) => A | undefined,
    fault: string,
    otherwise: ReadonlyArray<A>
  ): ReadonlySet<A> {
    const parseAll = (text: string): ReadonlySet<A> | undefined => {
      const items = text.split(",").map((item) => parse(item.trim()))
      const known = items.filter((item) => item !== undefined)
      return known.length === items.length ? new Set(known) : undefined
    }
    return this.parsed(variable, parseAll, `${fault}, separated by commas`) ?? new Set(otherwise)
  }

  /** Absolute path of a file that must be readable now. */
  file(variable: string, directory: string): string | undefined {
    const parse = (text: string): string | undefined => {
      const path = resolve(directory, text)
      try {
        accessSync(path, constants.R_OK)
        return path
      } catch {
        return undefined
      }
    }
    return this.parsed(variable, parse, "names a file that cannot be read")
  }
}
