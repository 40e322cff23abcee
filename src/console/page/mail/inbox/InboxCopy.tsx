import type { Email } from "postal-mime"
import { useState } from "preact/hooks"
import { useTurns } from "../../api/UseAnswer.ts"
import { Tabs } from "../../figures/Tabs.tsx"
import { Asking } from "../../parts/Asking.tsx"
import { Heading } from "../../parts/Heading.tsx"
import { Facts } from "../../parts/Tile.tsx"
import { useNavigation, ViewLink } from "../../view/Navigation.tsx"
import { isUnknown, partView } from "../Words.ts"
import { AttachmentLink } from "./AttachmentLink.tsx"
import { linksOf } from "./MailLinks.ts"

interface Copy {
  readonly source: string
  readonly mail: Email
  readonly links: ReturnType<typeof linksOf>
}

interface Part {
  readonly name: string
  readonly label: string
}

/** One recipient's copy, by its parts. */
export const InboxCopy = ({ id }: { readonly id: string }) => {
  const path = `/api/v1/emails/inbox/${encodeURIComponent(id)}`
  const [copy, setCopy] = useState<Copy>()
  const read = async (response: Response): Promise<void> => {
    const { default: PostalMime } = await import("postal-mime")
    const bytes = await response.arrayBuffer()
    const mail = await PostalMime.parse(bytes)
    setCopy({ mail, links: linksOf(mail), source: new TextDecoder("latin1").decode(bytes) })
  }
  const refused = useTurns(
    path,
    () => async (ask, signal) => {
      await read(await ask.open(path, { signal }))
      return undefined
    },
    { isExpected: isUnknown }
  )
  return (
    <>
      <p class="way-back">
        <ViewLink to={partView("inbox")}>The inbox</ViewLink>
      </p>
      {copy !== undefined ? (
        <Shown copy={copy} path={path} />
      ) : refused !== undefined && isUnknown(refused) ? (
        <Heading tab="Mail">No such mail</Heading>
      ) : (
        <Asking what="the mail" isRefused={refused !== undefined} />
      )}
    </>
  )
}

const partsOf = ({ attachments, html, text }: Email, links: number): ReadonlyArray<Part> => [
  ...(html === undefined ? [] : [{ name: "html", label: "HTML" }]),
  ...(text === undefined ? [] : [{ name: "text", label: "Text" }]),
  ...(attachments.length === 0
    ? []
    : [{ name: "attachments", label: `Attachments (${attachments.length})` }]),
  ...(links === 0 ? [] : [{ name: "links", label: `Links (${links})` }]),
  { name: "headers", label: "Headers" },
  { name: "source", label: "Source" }
]

const Shown = ({ copy, path }: { readonly copy: Copy; readonly path: string }) => {
  const { links, mail } = copy
  const { part } = useNavigation().view.params
  const parts = partsOf(mail, links.length)
  const open = parts.find(({ name }) => name === part)?.name ?? parts[0]?.name ?? "source"
  return (
    <>
      <Heading tab="Mail">{mail.subject ?? "No subject"}</Heading>
      <Facts
        of={[
          ["from", "From", addressesOf(mail.from === undefined ? [] : [mail.from])],
          ["to", "To", addressesOf(mail.to)],
          ["cc", "Cc", addressesOf(mail.cc)]
        ]}
      />
      <Tabs param="part" label="Parts of the mail" tabs={parts} open={open} />
      <Part copy={copy} open={open} path={path} />
    </>
  )
}

const addressesOf = (addresses: Email["to"] = []): string | undefined =>
  addresses.length === 0
    ? undefined
    : addresses.map(({ address, name }) => (name ? `${name} <${address}>` : address)).join(", ")

interface PartProps {
  readonly copy: Copy
  readonly open: string
  readonly path: string
}

const Part = ({ copy: { links, mail, source }, open, path }: PartProps) => {
  switch (open) {
    case "html":
      return <iframe class="mail-html" title="HTML of the mail" sandbox="" src={`${path}/html`} />
    case "text":
      return <Text of="Text of the mail" text={mail.text ?? ""} />
    case "attachments":
      return (
        <ul class="mail-lines" aria-label="Attachments">
          {mail.attachments.map((attachment, index) => (
            <li key={index}>
              <AttachmentLink attachment={attachment} />
            </li>
          ))}
        </ul>
      )
    case "links":
      return (
        <ul class="mail-lines" aria-label="Links">
          {links.map(({ href, isWeb, text }, index) => (
            <li key={index}>
              <span>
                <span class="hint">{text}</span>{" "}
                {isWeb ? (
                  <a href={href} target="_blank" rel="noopener noreferrer nofollow">
                    {href}
                  </a>
                ) : (
                  href
                )}
              </span>
            </li>
          ))}
        </ul>
      )
    case "headers":
      return <Text of="Headers of the mail" text={source.slice(0, headEnd(source))} />
    default:
      return <Text of="Source of the mail" text={source} />
  }
}

/** The index behind the last header. */
const headEnd = (source: string): number => {
  const end = source.search(/\r?\n\r?\n/)
  return end < 0 ? source.length : end
}

/** So much is shown of a text: a browser is slow with more. */
const shownCharacters = 512 * 1024

const Text = ({ of, text }: { readonly of: string; readonly text: string }) => (
  <>
    <pre class="mail-text" tabIndex={0} aria-label={of}>
      {text.slice(0, shownCharacters)}
    </pre>
    {text.length > shownCharacters && <p class="hint">The first 512 kB are shown.</p>}
  </>
)
