import type { EncodedDomain as Domain } from "#schemas/mail/Domain.ts"
import { useState } from "preact/hooks"
import { formatInstant } from "../../figures/Format.ts"
import { Code } from "../../parts/Code.tsx"
import { Dialog } from "../../parts/Dialog.tsx"
import { Toast } from "../../parts/Toast.tsx"
import { useChange } from "../../parts/UseChange.ts"
import { lightOfRecord, recordNameOf } from "../Words.ts"

interface DomainViewProps {
  readonly domain: Domain
  readonly path: string
  onChanged(): void
}

/** A domain: whether it is verified, the records to publish as they were found, and its keys. */
export const DomainView = ({ domain, onChanged, path }: DomainViewProps) => {
  const { name, verified } = domain
  // It stays open when it becomes verified.
  const [isOpenAtFirst] = useState(!verified)
  return (
    <details class="mail-domain" open={isOpenAtFirst}>
      <summary>
        <span class={`light ${verified ? "up" : "degraded"}`} aria-hidden="true" /> {name}{" "}
        <span class="hint">{stateOf(domain)}</span>
      </summary>
      <div class="mail-detail">
        <Verify path={path} onChanged={onChanged} />
        <ul class="mail-records" aria-label={`Records of ${name}`}>
          {domain.records.map((record) => (
            <li key={`${record.kind} ${record.name}`}>
              <RecordView record={record} />
            </li>
          ))}
        </ul>
        <p class="hint">{keysOf(domain)}</p>
        <div class="buttons">
          <Dialog
            action="Rotate the key"
            question="Another DKIM key is made, with a record of its own. The old one signs until that record is found."
            yes="Make another key"
            no="Keep the key"
            run={async (ask) => {
              await ask(`${path}/rotate`, { method: "POST" })
              onChanged()
            }}
          />
          <Dialog
            action="Delete the domain"
            question={`Mail from ${name} is signed no more, and its keys are deleted.`}
            yes="Delete it"
            run={async (ask) => {
              await ask(path, { method: "DELETE" })
              onChanged()
            }}
          />
        </div>
      </div>
    </details>
  )
}

const stateOf = ({ looked_up_at, verified, verified_at }: Domain): string => {
  if (verified && verified_at !== null) return `verified ${formatInstant(verified_at)}`
  return looked_up_at === null
    ? "not looked up yet"
    : `not verified, looked up ${formatInstant(looked_up_at)}`
}

/** `Keys: sb1 signing, sb2 awaited` */
const keysOf = ({ keys }: Domain): string =>
  `Keys: ${keys.map(({ selector, state }) => `${selector} ${state}`).join(", ")}`

const Verify = ({ onChanged, path }: Omit<DomainViewProps, "domain">) => {
  const change = useChange()
  const verify = (): void =>
    void change.run(async (ask) => {
      await ask(`${path}/verify`, { method: "POST" })
      onChanged()
    })
  return (
    <div>
      <button type="button" class="primary" disabled={change.isBusy} onClick={verify}>
        Verify
      </button>
      <Toast>{change.problem}</Toast>
    </div>
  )
}

const RecordView = ({ record }: { readonly record: Domain["records"][number] }) => {
  const { found, name, problem, status, type, value } = record
  const label = recordNameOf(record)
  return (
    <>
      <p>
        <span class={`light ${lightOfRecord(record)}`} aria-hidden="true" /> <strong>{label}</strong>{" "}
        <span class="hint">
          {type} · {status ?? "not looked up yet"}
          {record.kind === "dkim" ? " · needed" : ""}
        </span>
      </p>
      <Code of={`name of ${label}`} text={name} />
      <Code of={`value of ${label}`} text={value} />
      {problem !== null && <p class="problem">{problem}</p>}
      {found.length > 0 && status !== "ok" && <p class="hint mail-found">Found: {found.join(" · ")}</p>}
    </>
  )
}
