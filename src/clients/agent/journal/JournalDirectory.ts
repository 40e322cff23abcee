import { randomUUID } from "node:crypto"
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync
} from "node:fs"
import { hostname } from "node:os"
import { join } from "node:path"
import { Schema } from "effect"
import { JournalEntry, readJournalText } from "./JournalEntry.ts"
import { SessionJournal } from "./SessionJournal.ts"
import { lockSession, type LockAnswer } from "./SessionLock.ts"

const sessionIdPattern = /^ses_[0-9A-Za-z]{22}$/
/** A session can be resumed for 30 days after its last sign of life; its journal is kept a little longer. */
const keptMillis = 35 * 24 * 3_600_000

const Identity = Schema.fromJsonString(Schema.Struct({ journalId: Schema.String }))
const isSession = Schema.is(JournalEntry)

interface KnownSession {
  readonly id: string
  readonly usedMillis: number
}

/**
 * The journals of one user on one machine: `<state>/<host>/journal.json` with the id by which the server tells journals
 * apart, and `sessions/<id>/` with each session's file and lock. Homes are shared between machines and copied to
 * others; the host's name keeps apart what they did.
 */
export class JournalDirectory {
  readonly journalId: string
  private readonly sessionsPath: string

  /** Makes what is missing. Throws what the file system says. */
  constructor(stateDir: string) {
    const path = join(stateDir, hostname().replace(/[^\w.-]/g, "_") || "_")
    this.sessionsPath = join(path, "sessions")
    mkdirSync(this.sessionsPath, { recursive: true, mode: 0o700 })
    this.journalId = identify(path)
    this.removeOld()
  }

  lock(sessionId: string): LockAnswer {
    return lockSession(this.pathOf(sessionId))
  }

  /** To be called by who has the lock. */
  open(sessionId: string, session: { readonly url: string; readonly root: string }): SessionJournal {
    return new SessionJournal(join(this.pathOf(sessionId), "calls.log"), session)
  }

  /** The sessions of this workspace at this server that this machine knows, the last used first. */
  known(session: { readonly url: string; readonly root: string }): ReadonlyArray<KnownSession> {
    return this.ids()
      .flatMap((id) => {
        const file = join(this.pathOf(id), "calls.log")
        if (!existsSync(file)) return []
        const [first] = readJournalText(readFileSync(file, "utf8")).entries
        if (!isSession(first) || first.kind !== "session") return []
        return first.url === session.url && first.root === session.root
          ? [{ id, usedMillis: statSync(file).mtimeMs }]
          : []
      })
      .sort((a, b) => b.usedMillis - a.usedMillis)
  }

  private ids(): ReadonlyArray<string> {
    return readdirSync(this.sessionsPath).filter((name) => sessionIdPattern.test(name))
  }

  /** The server's session id is a part of a path here. */
  private pathOf(sessionId: string): string {
    if (!sessionIdPattern.test(sessionId)) throw new RangeError(`${sessionId} is not the id of a session`)
    return join(this.sessionsPath, sessionId)
  }

  private removeOld(): void {
    for (const id of this.ids()) {
      const file = join(this.pathOf(id), "calls.log")
      if (existsSync(file) && statSync(file).mtimeMs < Date.now() - keptMillis) {
        rmSync(this.pathOf(id), { recursive: true, force: true })
      }
    }
  }
}

/** The journal's id: made by the first process, and the same for all that start at the same time. */
const identify = (path: string): string => {
  const file = join(path, "journal.json")
  if (!existsSync(file)) {
    const draft = join(path, `draft.${randomUUID()}`)
    writeFileSync(draft, JSON.stringify({ journalId: randomUUID() }), { mode: 0o600, flush: true })
    try {
      linkSync(draft, file)
    } catch (error) {
      if (!existsSync(file)) throw error
    } finally {
      rmSync(draft, { force: true })
    }
  }
  return Schema.decodeUnknownSync(Identity)(readFileSync(file, "utf8")).journalId
}
