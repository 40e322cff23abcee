import { useState } from "preact/hooks"
import type { Room } from "../view/Rooms.ts"
import { Heading } from "../parts/Heading.tsx"
import { InboxList } from "./InboxList.tsx"
import { MailForm } from "./MailForm.tsx"
import { MailList } from "./MailList.tsx"
import "./Mail.css"

/** Mail: a form that sends, what became of each mail, and the inbox of the sandbox. */
const Mail = () => {
  const [sent, setSent] = useState(0)
  return (
    <div class="mail">
      <Heading>Mail</Heading>
      <MailForm onSent={() => setSent((before) => before + 1)} />
      <MailList since={sent} />
      <InboxList since={sent} />
    </div>
  )
}

export const room: Room = {
  name: "mail",
  tile: { order: 7, title: "Mail", purpose: "mail to addresses", components: ["mail"] },
  page: {
    path: "mail",
    title: "Mail",
    order: 6,
    params: [],
    Page: Mail,
    probe: { path: "/api/v1/emails" }
  }
}
