import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { type Asked, type Drawn, Keyboard, streams } from "./Keystrokes.ts"
import { keys } from "./TerminalRig.ts"

const seed = Number(process.env["KEYS_SEED"] ?? Date.now() % 2_147_483_647)
const count = 10_000

const wide: Readonly<Record<string, RegExp>> = {
  session: /\[s? ?this session\]/,
  always: /\[a? ?always here\]/,
  rule: /\[r? ?npm test \* /
}

/** Why an approval should not have been given; undefined: it was meant. */
const faultOf = ({ answeredAt, approval, frames, lines, pressed }: Asked): string | undefined => {
  if (approval === undefined || approval === "no") return undefined
  const [first] = frames
  const last = frames.at(-1)
  const key = pressed.at(-1)
  const before = pressed.at(-2)
  if (first === undefined || last === undefined || key === undefined)
    return "nothing was drawn, or no key pressed"
  if (key.at - first.at < 500) return "the key came before the question, or right behind it"
  if (key.isPaste) return "the key was pasted"
  if (last.columns < 32 || last.rows < 10) return "the window is too small"
  if (last.lines.length > last.rows) return "the question is higher than the window"
  if (key.text !== "" && !pressed.some(({ key: tab, text }) => tab === keys.tab && text === key.text))
    return "keys were for the text in the editor"
  const shown = new Set(
    frames.filter(({ columns }) => columns === last.columns).flatMap((frame) => frame.lines)
  )
  if (!lines.every((line) => [...shown].some((one) => one.endsWith(line)))) return "not all was on the screen"
  if (approval !== "once") {
    if (key.key !== keys.enter || before === undefined) return "it was not confirmed"
    const words = wide[typeof approval === "object" ? "rule" : approval]
    const isShown = ({ lines: drawn }: Drawn): boolean =>
      words?.test(drawn.join(" ")) === true && drawn.join(" ").includes("Enter confirms")
    const until = frames.filter(({ at }) => at <= key.at)
    const since = until[until.findLastIndex((frame) => !isShown(frame)) + 1]
    if (since === undefined) return "it was not shown when it was confirmed"
    if (key.at - Math.max(before.at, since.at) < 300) return "it was confirmed before it could be read"
    return undefined
  }
  if (key.key === keys.enter)
    return last.lines.join(" ").includes("once]") ? undefined : "once was not chosen"
  if (key.key.toLowerCase() !== "y") return `${JSON.stringify(key.key)} is no yes`
  if (key.text !== "") return "the editor held text"
  if (answeredAt - key.at < 500) return "it was taken before a word could have gone on"
  const isWord = before !== undefined && /^[a-z ]$/i.test(before.key) && key.at - before.at < 500
  return isWord ? "it was part of a word" : undefined
}

const isSubsequence = (part: string, whole: string): boolean => {
  let at = 0
  for (const letter of whole) if (letter === part[at]) at += 1
  return at === part.length
}

describe(`random keystrokes with pauses, pastes and resizes (KEYS_SEED=${seed})`, () => {
  it(`approve nothing that was not meant, in ${count} streams`, () => {
    const given = new Map<string, number>()
    fc.assert(
      fc.property(streams, (actions) => {
        const keyboard = new Keyboard()
        keyboard.run(actions)
        for (const asked of keyboard.asked) {
          const { approval } = asked
          const name = typeof approval === "object" ? `rule ${approval.kept}` : String(approval)
          given.set(name, (given.get(name) ?? 0) + 1)
          assert.isUndefined(faultOf(asked))
        }
        assert.isTrue(isSubsequence(keyboard.before, keyboard.received), "typed text was lost")
      }),
      { numRuns: count, seed }
    )
    // Streams that never approve anything would prove nothing.
    for (const name of ["once", "session", "always", "rule session", "rule always", "no", "undefined"])
      assert.isAbove(given.get(name) ?? 0, 10, `${name}: ${JSON.stringify([...given])}`)
  })
})
