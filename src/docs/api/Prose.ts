import { html, type Html } from "#src/docs/page/Html.ts"

/** What descriptions in the document are written with: paragraphs, indented code, and `code` among words. */
export const prose = (text: string): Html =>
  html`${text
    .split(/\n{2,}/)
    .filter((part) => part.trim() !== "")
    .map((part) =>
      part.startsWith("    ")
        ? html`<pre
            tabindex="0"
            role="group"
            aria-label="Code"
          ><code>${part.replaceAll(/^ {4}/gm, "")}</code></pre>`
        : html`<p>${words(part)}</p>`
    )}`

/** `code` among words, and addresses of this server as links. */
export const words = (text: string): Html =>
  html`${text.split(/(`[^`]+`|\/docs\/agent\b)/).map((part) => {
    if (part === "/docs/agent") return html`<a href="/docs/agent">/docs/agent</a>`
    return part.startsWith("`") && part.length > 1 ? html`<code>${part.slice(1, -1)}</code>` : html`${part}`
  })}`
