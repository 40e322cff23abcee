import type { Approval, ApprovalAsk, Kept } from "../boundary/Approval.ts"

/** One answer that can be given, in the order in which they are shown. */
export interface Choice {
  /** the letter that answers, or that chooses what is then confirmed; several rules share theirs */
  readonly letter: "y" | "s" | "r" | "a" | "n"
  readonly words: string
  /** its coverage, shown before it is confirmed */
  readonly covers: string
  readonly approval: Approval
  /** lasts longer than once: no single key gives it */
  readonly isWide: boolean
}

const lasts: Readonly<Record<Kept, string>> = {
  session: "Until this session ends (/new, another session, leaving)",
  always: "In this workspace, until you revoke it (/permissions)"
}

const oneLine = (text: string): string => text.replaceAll("\n", " ⏎ ")

/** The possible answers. If none can be stored, the longest one offered is for the session. */
export const choicesOf = ({ rules = [], scope, unkept }: ApprovalAsk): ReadonlyArray<Choice> => {
  const kept: ReadonlyArray<Kept> = unkept === undefined ? ["session", "always"] : ["session"]
  const ofRules = rules.flatMap(({ covers, examples, name }, rule) => {
    const also = examples.length === 0 ? "" : ` Of this session also: ${examples.map(oneLine).join(" · ")}`
    return kept.map((one): Choice => ({
      letter: "r",
      words: `${name} ${one === "session" ? "this session" : "always here"}`,
      covers: `${lasts[one]}: ${covers}.${also}`,
      approval: { rule, kept: one },
      isWide: true
    }))
  })
  const exact = kept.map((one): Choice => ({
    letter: one === "session" ? "s" : "a",
    words: one === "session" ? "this session" : "always here",
    covers: `${lasts[one]}: ${scope}`,
    approval: one,
    isWide: true
  }))
  return [
    { letter: "y", words: "once", covers: "This one time", approval: "once", isWide: false },
    ...exact,
    ...ofRules,
    { letter: "n", words: "no", covers: "Refused; the agent is told", approval: "no", isWide: false }
  ]
}
