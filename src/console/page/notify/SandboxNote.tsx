import type { Ready } from "#schemas/system/SystemApi.ts"
import { useAnswer } from "../api/UseAnswer.ts"

const refreshMillis = 60_000

/** A server that is not ready says so elsewhere on the page. */
const isExpected = (): boolean => true

/** The way to the inbox of the sandbox, where one stands in for services of channels; nothing where there is none. */
export const SandboxNote = () => {
  const { data } = useAnswer<typeof Ready.Type>("/readyz", refreshMillis, { isExpected })
  const [inbox] = /http:\/\/127\.0\.0\.1:\d+\//.exec(data?.components["channels"]?.detail ?? "") ?? []
  if (inbox === undefined) return null
  return (
    <p class="hint">
      A sandbox stands in for push services, webhooks and chats: on the server's machine,{" "}
      <a href={inbox} target="_blank" rel="noreferrer">
        its inbox
      </a>{" "}
      shows what came.
    </p>
  )
}
