import type { EditorTheme, MarkdownTheme, SelectListTheme } from "@earendil-works/pi-tui"

export type Style = (text: string) => string

/** The styles of the terminal. Only the sixteen colours that every terminal maps to its user's taste are used. */
export interface Theme {
  readonly bold: Style
  readonly dim: Style
  readonly italic: Style
  readonly accent: Style
  readonly good: Style
  readonly warning: Style
  readonly bad: Style
  readonly markdown: MarkdownTheme
  readonly editor: EditorTheme
  readonly select: SelectListTheme
}

/** SGR of ECMA-48 8.3.117: the codes that switch one aspect on and off again, leaving the others alone. */
const style =
  (on: number, off: number): Style =>
  (text) =>
    text === "" ? "" : `\u001b[${on}m${text}\u001b[${off}m`

const plain: Style = (text) => text

/** Without colours, weight and slant are left: NO_COLOR (no-color.org) asks for no more. */
export const makeTheme = (colors: boolean): Theme => {
  const color = (code: number): Style => (colors ? style(code, 39) : plain)
  const bold = style(1, 22)
  const dim = style(2, 22)
  const italic = style(3, 23)
  const underline = style(4, 24)
  const [bad, good, warning, accent] = [color(31), color(32), color(33), color(36)]
  const select: SelectListTheme = {
    selectedPrefix: accent,
    selectedText: (text) => accent(bold(text)),
    description: dim,
    scrollInfo: dim,
    noMatch: dim
  }
  return {
    bold,
    dim,
    italic,
    accent,
    good,
    warning,
    bad,
    select,
    editor: { borderColor: dim, selectList: select },
    markdown: {
      heading: (text) => accent(bold(text)),
      link: accent,
      linkUrl: dim,
      code: accent,
      codeBlock: plain,
      codeBlockBorder: dim,
      quote: italic,
      quoteBorder: dim,
      hr: dim,
      listBullet: accent,
      bold,
      italic,
      strikethrough: style(9, 29),
      underline
    }
  }
}
