import type { Whereabouts } from "../boundary/Whereabouts.ts"
import { folded, signsOfRepository } from "../boundary/ProtectedPaths.ts"
import type { ToolCall } from "./ToolCall.ts"
import { ToolFailure } from "./ToolFailure.ts"

/** The effect of a call on files, where it can be known before the call. */
type Reach = "reads" | "changes" | "searches" | "anything" | "nothing"

const reachOf: Readonly<Record<ToolCall["method"], Reach>> = {
  "fs.read": "reads",
  "fs.write": "changes",
  "fs.edit": "changes",
  "fs.list": "searches",
  "fs.glob": "searches",
  "fs.grep": "searches",
  "proc.exec": "anything"
}

/** The files that a call is about. */
interface Claim {
  readonly reach: Reach
  /** in one spelling for all that some file system takes for one name, each name after a slash */
  readonly path: string
  readonly file: string | undefined
  /** the path up to the first name that would make a repository of its directory */
  readonly repository: string | undefined
}

interface Entry {
  readonly call: ToolCall
  /** of a running call: its claim when it began */
  claim: Claim | undefined
  readonly begin: () => void
}

/** A place among the calls. */
export interface Turn {
  /** done when no call before it stands in the way; fails when the call is cancelled before */
  readonly come: Promise<void>
  /** the call is over: those behind it may come */
  readonly leave: () => void
}

const signs = new Set(signsOfRepository.map(folded))

const claimOf = (reach: Reach, { file, parts }: Whereabouts): Claim => {
  const names = parts.map(folded)
  const sign = names.findIndex((name) => signs.has(name))
  const joined = (some: ReadonlyArray<string>): string => some.map((name) => `/${name}`).join("")
  return {
    reach,
    path: joined(names),
    file,
    repository: reach === "changes" && sign >= 0 ? joined(names.slice(0, sign)) : undefined
  }
}

/** Whether one is the other, or holds it. */
const isAlong = (one: string, other: string): boolean =>
  one === other || one.startsWith(`${other}/`) || other.startsWith(`${one}/`)

const ignoreRules = "/.gitignore"

/** Rules for a directory say what a search finds anywhere below it. */
const foundBy = ({ path }: Claim): string =>
  path.endsWith(ignoreRules) ? path.slice(0, -ignoreRules.length) : path

/** Whether what one call does can be seen by the other. */
const touch = (one: Claim, other: Claim): boolean => {
  const changes = [one, other].filter(({ reach }) => reach === "changes")
  if (changes.length === 0) return false
  if (isAlong(one.path, other.path) || (one.file !== undefined && one.file === other.file)) return true
  // Three names make a repository of a directory: each is refused where the other two are.
  if (one.repository !== undefined && one.repository === other.repository) return true
  const isSearched = one.reach === "searches" || other.reach === "searches"
  return isSearched && isAlong(foundBy(one), foundBy(other))
}

/**
 * The order of calls that come together. Calls about one file, however its path is written, are made in the order in
 * which they came, and so are reads and searches with changes below them. A command may do anything: it waits for all
 * before it, and all behind it wait. Other calls are made at once. A model that is told how a call ended can rely on
 * it, beside any other calls of its message.
 */
export class CallOrder {
  readonly #where: (path: string) => Whereabouts | undefined
  /** in the order in which they came, until they are over */
  #entries: ReadonlyArray<Entry> = []

  /** @param where finds a path's file; asked anew before each beginning, as calls change where paths lead */
  constructor(where: (path: string) => Whereabouts | undefined) {
    this.#where = where
  }

  /** Takes a place behind all calls that have one. */
  enter(call: ToolCall, signal: AbortSignal): Turn {
    const { promise, reject, resolve } = Promise.withResolvers<void>()
    const entry: Entry = { call, claim: undefined, begin: resolve }
    const leave = (): void => {
      signal.removeEventListener("abort", cancel)
      if (!this.#entries.includes(entry)) return
      this.#entries = this.#entries.filter((one) => one !== entry)
      this.#advance()
    }
    const cancel = (): void => {
      if (entry.claim !== undefined) return
      reject(new ToolFailure("cancelled", "Not done: it was cancelled before it began"))
      leave()
    }
    this.#entries = [...this.#entries, entry]
    if (signal.aborted) cancel()
    else signal.addEventListener("abort", cancel, { once: true })
    this.#advance()
    return { come: promise, leave }
  }

  #advance(): void {
    const before: Array<Claim> = []
    for (const entry of this.#entries) {
      const claim = entry.claim ?? this.#claimOf(entry.call)
      if (entry.claim === undefined && !this.#waits(claim, before)) {
        entry.claim = claim
        entry.begin()
      }
      before.push(claim)
      // The targets of later calls' paths are known when it is over.
      if (claim.reach === "anything") return
    }
  }

  #waits(claim: Claim, before: ReadonlyArray<Claim>): boolean {
    return claim.reach === "anything" ? before.length > 0 : before.some((earlier) => touch(earlier, claim))
  }

  #claimOf({ method, params }: ToolCall): Claim {
    const reach = reachOf[method] ?? "nothing"
    const found = reach === "anything" ? undefined : this.#where(pathOf(params))
    if (found !== undefined) return claimOf(reach, found)
    return {
      reach: reach === "anything" ? reach : "nothing",
      path: "",
      file: undefined,
      repository: undefined
    }
  }
}

/** The path that a call names; the workspace's root where it names none. */
export const pathOf = (params: unknown): string =>
  typeof params === "object" && params !== null && "path" in params && typeof params.path === "string"
    ? params.path
    : "."
