import type { RenderedBody, ShownFormat } from "./Body.ts"
import { renderJson } from "./RenderJson.ts"
import { renderLog } from "./RenderLog.ts"
import { renderText } from "./RenderText.ts"

/** All formats but Markdown, in time and memory that grow with the text; Markdown's parser is loaded where it runs. */
export const renderBody = (text: string, format: Exclude<ShownFormat, "markdown">): RenderedBody => {
  if (format === "log") return renderLog(text)
  return format === "text" ? renderText(text) : (renderJson(text) ?? renderText(text, notJson))
}

const notJson = "This is no JSON object or array of at most 64 levels, so it is shown as text."
