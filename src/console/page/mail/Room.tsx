import type { Room } from "../view/Rooms.ts"
import type { View } from "../view/View.ts"
import { useNavigation, ViewLink } from "../view/Navigation.tsx"
import { DomainList } from "./domains/DomainList.tsx"
import { InboxCopy } from "./inbox/InboxCopy.tsx"
import { InboxList } from "./inbox/InboxList.tsx"
import { MailView } from "./sent/MailView.tsx"
import { SentMail } from "./sent/SentMail.tsx"
import { SuppressionList } from "./suppressions/SuppressionList.tsx"
import { mailView, partView } from "./Words.ts"
import "./Mail.css"

/** Mail: a form that sends and what became of each mail, the inbox of the sandbox, suppressions, and domains. */
const Mail = () => {
  const { mail, show } = useNavigation().view.params
  return (
    <div class="mail">
      <nav class="tabs" aria-label="Parts of this room">
        <Part to={mailView} isOpen={show === undefined}>
          Sent
        </Part>
        <Part to={partView("inbox")} isOpen={show === "inbox"}>
          Inbox
        </Part>
        <Part to={partView("suppressions")} isOpen={show === "suppressions"}>
          Suppressions
        </Part>
        <Part to={partView("domains")} isOpen={show === "domains"}>
          Domains
        </Part>
      </nav>
      <Open mail={mail} show={show} />
    </div>
  )
}

const Part = (props: { readonly to: View; readonly isOpen: boolean; readonly children: string }) => (
  <ViewLink to={props.to} isCurrent={props.isOpen}>
    {props.children}
  </ViewLink>
)

const Open = ({ mail, show }: { readonly mail: string | undefined; readonly show: string | undefined }) => {
  switch (show) {
    case "inbox":
      return mail === undefined ? <InboxList /> : <InboxCopy key={mail} id={mail} />
    case "suppressions":
      return <SuppressionList />
    case "domains":
      return <DomainList />
    default:
      return mail === undefined ? <SentMail /> : <MailView key={mail} id={mail} />
  }
}

export const room: Room = {
  name: "mail",
  tile: { order: 7, title: "Mail", purpose: "mail to addresses", components: ["mail"] },
  page: {
    path: mailView.room,
    title: "Mail",
    order: 6,
    params: ["mail", "show", "part"],
    item: "mail",
    Page: Mail,
    probe: { path: "/api/v1/emails?limit=1" }
  }
}
