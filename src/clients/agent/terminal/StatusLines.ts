import { visibleWidth } from "@earendil-works/pi-tui"
import { amount, seconds, tokens } from "./Figures.ts"
import { fitted, spread } from "./Lines.ts"
import { safeLine } from "./SafeText.ts"
import type { Link, TerminalState } from "./TerminalState.ts"
import type { Theme } from "./Theme.ts"

/** USD of all that is known of this session. */
export const spent = (state: TerminalState): number =>
  Object.values(state.costs).reduce((sum, usd) => sum + usd, 0)

const frames = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]

/** The activity above the editor: how long the work takes, and the messages that wait behind it. */
export const drawActivity = (
  state: TerminalState,
  theme: Theme,
  width: number,
  now: number
): ReadonlyArray<string> => {
  const { active, items, queue } = state
  const waiting = queue.map(({ mode, text }) =>
    theme.dim(fitted(`${mode === "steer" ? "↳ next" : "↳ later"}: ${safeLine(text)}`, width))
  )
  if (active === undefined || state.link.state === "closed") return waiting
  const frame = frames[Math.floor(now / 200) % frames.length] ?? ""
  const last = items.findLast((item) => item.kind === "tool" && item.progress === "running")
  const asks = items.some((item) => item.kind === "tool" && item.progress === "asking")
  const doing = asks ? "waiting for your word" : last?.kind === "tool" ? `running ${last.tool}` : "working"
  const since = seconds(Math.max(1_000, Math.floor((now - active.since) / 1_000) * 1_000))
  const hint = asks ? "" : width < 70 ? "Esc stops" : "Esc stops · Enter steers · Alt-Enter queues"
  return [spread(`${theme.accent(frame)} ${doing} · ${since}`, theme.dim(hint), width), ...waiting]
}

const linkWords = (link: Link, theme: Theme, now: number): string => {
  switch (link.state) {
    case "connected":
      return theme.good("●")
    case "connecting":
      return theme.warning("○ connecting")
    case "waiting": {
      const wait = Math.ceil((link.retryAt - now) / 1_000)
      return theme.warning(wait > 0 ? `○ reconnecting in ${wait} s` : "○ reconnecting")
    }
    default:
      return theme.bad("○ closed")
  }
}

/** One line; where there is too little room the least important parts give way. */
export const drawStatus = (
  state: TerminalState,
  workspace: string,
  theme: Theme,
  width: number,
  now: number
): string => {
  const { contextTokens, session } = state
  const link = linkWords(state.link, theme, now)
  if (session === undefined) return spread(link, theme.dim(safeLine(workspace)), width)
  const window = session.model.context_length
  const share = window > 0 ? ` (${Math.round((100 * contextTokens) / window)}%)` : ""
  const full = window > 0 && contextTokens > 0.8 * window ? theme.warning : theme.dim
  const usd = spent(state)
  const money = usd === 0 && session.billing.mode === "subscription" ? "plan" : amount(usd)
  // The further down, the sooner it is left out; the workspace goes first.
  const parts = [
    `${link}${state.link.state === "connected" ? " " : " · "}${safeLine(session.model.id)}`,
    full(`${tokens(contextTokens)}/${tokens(window)}${width < 70 ? "" : share}`),
    theme.dim(money),
    theme.dim(`thinking ${session.thinkingLevel}`)
  ]
  const name = theme.dim(safeLine(workspace))
  const beside = fitting(parts, width - visibleWidth(name) - 2)
  const left = beside.length === parts.length ? beside : fitting(parts, width)
  return spread(left.join(" · "), beside.length === parts.length ? name : "", width)
}

/** The first parts that find room on a line, one at least. */
const fitting = (parts: ReadonlyArray<string>, width: number): ReadonlyArray<string> =>
  parts.filter((_part, index) => index === 0 || visibleWidth(parts.slice(0, index + 1).join(" · ")) <= width)
