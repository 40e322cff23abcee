import type { EncodedDomain as Domain } from "#schemas/mail/Domain.ts"
import { useState } from "preact/hooks"
import { useAnswer } from "../../api/UseAnswer.ts"
import { Asking } from "../../parts/Asking.tsx"
import { Form, TextField } from "../../parts/Form.tsx"
import { Heading } from "../../parts/Heading.tsx"
import { useChange } from "../../parts/UseChange.ts"
import { useCount } from "../../parts/UseCount.ts"
import { DomainView } from "./DomainView.tsx"

const path = "/api/v1/emails/domains"
const refreshMillis = 10_000

/** Domains to send from: a form that adds one, and each with the records to publish. */
export const DomainList = () => {
  const [since, onChanged] = useCount()
  const { data, refused } = useAnswer<{ readonly domains: ReadonlyArray<Domain> }>(path, refreshMillis, {
    since
  })
  return (
    <>
      <Heading tab="Mail">Domains</Heading>
      <p class="hint">
        Mail from a domain is signed once its DKIM record is found in DNS. A relay takes mail from verified
        domains alone.
      </p>
      <NewDomain onAdded={onChanged} />
      <section class="mails" aria-label="Domains" aria-busy={data === undefined}>
        {data === undefined && <Asking what="your domains" isRefused={refused !== undefined} />}
        {data?.domains.length === 0 && <p class="hint">No domains yet.</p>}
        {data?.domains.map((domain) => (
          <DomainView key={domain.id} domain={domain} path={`${path}/${domain.id}`} onChanged={onChanged} />
        ))}
      </section>
    </>
  )
}

const NewDomain = ({ onAdded }: { onAdded(): void }) => {
  const change = useChange()
  const [name, setName] = useState("")
  const onSubmit = (): void =>
    void change.run(async (ask) => {
      await ask(path, { method: "POST", json: { name: name.trim() } })
      setName("")
      onAdded()
    })
  return (
    <Form class="site-form" label="New domain" change={change} submit="Add the domain" onSubmit={onSubmit}>
      <TextField
        label="Domain"
        name="name"
        placeholder="example.com"
        required
        maxLength={300}
        autocapitalize="off"
        value={name}
        onInput={setName}
      />
    </Form>
  )
}
