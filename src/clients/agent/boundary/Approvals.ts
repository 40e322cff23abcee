import { randomBytes } from "node:crypto"
import type { Approval, ApprovalAsk, Kept, RuleOffer } from "./Approval.ts"
import { changeApprovals, type Granted, readApprovals } from "./ApprovalFile.ts"
import { isCovered, type Need, type Rule, ruleCovers, ruleName, rulesFor, type Subject } from "./Rule.ts"

const approvalLimits = {
  /** approvals that are kept for one workspace; beyond it none is kept until some are revoked */
  kept: 1_000,
  /** approvals of one session; beyond it the oldest is asked for again */
  session: 1_000,
  /** characters of what is allowed; longer is asked for each time */
  keyCharacters: 16_384,
  /** of a session's questions, from which examples are taken */
  seen: 100,
  examples: 3
} as const

/** A question to the user, and the key of an answer that is kept for longer than once. */
export interface Question {
  readonly ask: ApprovalAsk
  /** two questions with one key are the same question; its words are `ask.scope` */
  readonly key: string
  /** the subject of a possible rule; absent: no rule covers it */
  readonly subject?: Subject
}

/** One approval as it is listed. */
interface Permission extends Omit<Granted, "key" | "rule"> {
  readonly scope: "session" | "session rule" | "workspace" | "workspace rule"
}

export interface Permitted {
  readonly permissions: ReadonlyArray<Permission>
  /** why a part of the file, or all of it, does not count */
  readonly problem?: string
  /** all of it does not */
  readonly isDamaged: boolean
}

const needOf = ({ ask, subject }: Question): Need | undefined =>
  subject === undefined ? undefined : { subject, kinds: ask.kinds }

const answers = (granted: Granted, question: Question): boolean => {
  if (granted.rule === undefined) return granted.key === question.key
  const need = needOf(question)
  return need !== undefined && isCovered(granted.rule, need)
}

const permissionOf = ({ key: _key, rule, ...rest }: Granted, kept: Kept): Permission => ({
  ...rest,
  scope: `${kept === "session" ? "session" : "workspace"}${rule === undefined ? "" : " rule"}`
})

const subjectText = ({ ask, subject }: Question): string =>
  subject === undefined ? ask.detail : subject.type === "command" ? subject.command : subject.path

/** The permissions kept in the configuration, of all workspaces or one. */
export const keptPermissions = (configDir: string, root?: string): Permitted => {
  const { granted, problem, strange } = readApprovals(configDir)
  const own = granted.filter(({ workspace }) => root === undefined || workspace === root)
  const unread = `${strange.length} approvals of another version are kept and count for nothing`
  const said = problem ?? (strange.length === 0 ? undefined : unread)
  return {
    permissions: own.map((one) => permissionOf(one, "always")),
    isDamaged: problem !== undefined,
    ...(said !== undefined && { problem: said })
  }
}

/** Takes back what is kept, and gives how many. `which`: an id, or whether it goes. Throws where the file cannot be changed. */
export const revokeKept = (configDir: string, which: (granted: Granted) => boolean): number => {
  let count = 0
  changeApprovals(configDir, (granted) => {
    const left = granted.filter((one) => !which(one))
    count = granted.length - left.length
    return count === 0 ? granted : left
  })
  return count
}

/** The grants of one session of the server. */
class SessionGrants {
  granted: ReadonlyArray<Granted> = []
  seen: ReadonlyArray<Question> = []
  readonly id: string

  constructor(id: string) {
    this.id = id
  }
}

/**
 * The user's permissions in one workspace: for the server's session in memory, for always in the client's
 * configuration, which is read anew at each question, so that a revocation by another process counts at once.
 */
export class Approvals {
  readonly #directory: string
  readonly #root: string
  #session = new SessionGrants("")
  #told: (problem: string) => void = () => undefined

  constructor(configDir: string, root: string) {
    this.#directory = configDir
    this.#root = root
  }

  /** Sets the receiver of failures to store a permission. */
  tellProblems(told: (problem: string) => void): void {
    this.#told = told
  }

  /** Calls come from this session of the server from now on: permissions of another one end. */
  enter(session: string): void {
    if (this.#session.id !== session) this.#session = new SessionGrants(session)
  }

  /** Whether it may be done: as remembered, else as the user says. */
  async allows(question: Question, approve: (ask: ApprovalAsk) => Promise<Approval>): Promise<boolean> {
    const session = this.#session
    const kept = readApprovals(this.#directory)
    const own = kept.granted.filter(({ workspace }) => workspace === this.#root)
    const isRemembered = [...session.granted, ...own].some((granted) => answers(granted, question))
    if (isRemembered) return true
    const need = needOf(question)
    const rules = need === undefined ? [] : rulesFor(need)
    const unkept = kept.problem ?? this.#fullWith(own.length, question)
    const approval = await approve({
      ...question.ask,
      rules: rules.map((rule) => this.#offerOf(rule, question, session)),
      ...(unkept !== undefined && { unkept })
    })
    session.seen = [...session.seen, question].slice(-approvalLimits.seen)
    // Ended while the user decided: the answer is for this call at most, and its session is gone.
    if (approval === "no" || approval === "once") return approval === "once"
    const rule = typeof approval === "object" ? rules[approval.rule] : undefined
    if (typeof approval === "object" && rule === undefined) return false
    const granted = this.#grantedFor(question, rule)
    const isKept = (typeof approval === "object" ? approval.kept : approval) === "always"
    if (!isKept || unkept !== undefined || !this.#keep(granted))
      session.granted = [...session.granted, granted].slice(-approvalLimits.session)
    return true
  }

  /** Of this session and of this workspace, with why the file does not count. */
  list(): Permitted {
    const kept = keptPermissions(this.#directory, this.#root)
    const session = this.#session.granted.map((one) => permissionOf(one, "session"))
    return { ...kept, permissions: [...session, ...kept.permissions] }
  }

  /** Takes back one by its id, or all of this session and workspace; gives how many. Throws where the file cannot be changed. */
  revoke(which: string | { readonly all: true }): number {
    const goes = ({ id, workspace }: Granted): boolean =>
      workspace === this.#root && (typeof which === "object" || id === which)
    const before = this.#session.granted
    this.#session.granted = before.filter((one) => !goes(one))
    const ofSession = before.length - this.#session.granted.length
    const isKept = readApprovals(this.#directory).granted.some(goes)
    return ofSession + (isKept ? revokeKept(this.#directory, goes) : 0)
  }

  #grantedFor(question: Question, rule: Rule | undefined): Granted {
    const covers =
      rule === undefined ? `${question.ask.scope}: ${subjectText(question)}` : ruleCovers(rule, this.#root)
    return {
      id: `ap_${randomBytes(6).toString("hex")}`,
      workspace: this.#root,
      kinds: question.ask.kinds,
      covers,
      given: new Date().toISOString(),
      ...(rule === undefined ? { key: question.key } : { rule })
    }
  }

  #offerOf(rule: Rule, question: Question, { seen }: SessionGrants): RuleOffer {
    const others = seen.flatMap((one) => {
      const need = needOf(one)
      return need !== undefined && one.key !== question.key && isCovered(rule, need) ? [subjectText(one)] : []
    })
    const examples = [...new Set(others)].slice(-approvalLimits.examples)
    return { name: ruleName(rule), covers: ruleCovers(rule, this.#root), examples }
  }

  #fullWith(count: number, { key }: Question): string | undefined {
    if (count >= approvalLimits.kept)
      return `${count} approvals are kept for this workspace, which is all there may be: revoke some with /permissions`
    return key.length > approvalLimits.keyCharacters ? "This is too long to be kept" : undefined
  }

  #keep(granted: Granted): boolean {
    try {
      changeApprovals(this.#directory, (all) => [...all, granted])
      return true
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      this.#told(`Allowed for this session only, as it could not be kept: ${why}`)
      return false
    }
  }
}
