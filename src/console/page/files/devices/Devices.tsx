import { useState } from "preact/hooks"
import { useAnswer } from "../../api/UseAnswer.ts"
import { Asking } from "../../parts/Asking.tsx"
import { Code } from "../../parts/Code.tsx"
import { Dialog } from "../../parts/Dialog.tsx"
import { Form, TextField } from "../../parts/Form.tsx"
import { Heading } from "../../parts/Heading.tsx"
import { Modal } from "../../parts/Modal.tsx"
import { useChange } from "../../parts/UseChange.ts"
import { formatWhen } from "../Words.ts"
import { type Device, type DeviceList, path, platforms } from "./Device.ts"
import { isClosed } from "../Closed.ts"
import { useCount } from "../../parts/UseCount.ts"

const refreshMillis = 30_000

/** The user's machines: when each was seen, its name and folder, and an end to it. */
export const Devices = () => {
  const [since, onChanged] = useCount()
  const { data, refused } = useAnswer<DeviceList>(path, refreshMillis, { since, isExpected: isClosed })
  return (
    <section class="devices">
      <Heading>Devices</Heading>
      {refused !== undefined && isClosed(refused) ? (
        <p class="hint">{refused.message}.</p>
      ) : (
        data === undefined && <Asking what="your devices" isRefused={refused !== undefined} />
      )}
      {data?.devices.length === 0 && (
        <p class="hint">No devices yet. A machine becomes one when its command line logs in:</p>
      )}
      <div class="items">
        <ul aria-label="Devices">
          {data?.devices.map((device) => (
            <Row key={device.id} device={device} onChanged={onChanged} />
          ))}
        </ul>
      </div>
      {data !== undefined && data.devices.length > 0 && (
        <p class="hint">Log in on another machine to add it:</p>
      )}
      {data !== undefined && <Code of="command" text={`signalbox login ${location.origin}`} />}
    </section>
  )
}

interface RowProps {
  readonly device: Device
  onChanged(): void
}

const Row = ({ device, onChanged }: RowProps) => {
  const [isOpen, setOpen] = useState(false)
  const { id, lastSeenAt, name, platform, syncRoot } = device
  return (
    <li>
      <span class="item-words">
        <strong>{name}</strong>{" "}
        <span class="hint">
          {platforms[platform]} · {syncRoot} · seen{" "}
          <time dateTime={lastSeenAt}>{formatWhen(lastSeenAt)}</time>
        </span>
      </span>
      <span class="buttons">
        <button type="button" class="small" aria-label={`Change ${name}`} onClick={() => setOpen(true)}>
          Change
        </button>
        <Dialog
          action="Remove"
          question={`${name} gets no files any more, and the key that it logged in for works nowhere. Files on it stay there.`}
          yes="Remove it"
          run={async (ask) => {
            await ask(`${path}/${id}`, { method: "DELETE" })
            onChanged()
          }}
        />
      </span>
      {isOpen && <Change device={device} onChanged={onChanged} onClose={() => setOpen(false)} />}
    </li>
  )
}

const Change = ({ device, onChanged, onClose }: RowProps & { onClose(): void }) => {
  const change = useChange()
  const [name, setName] = useState(device.name)
  const [syncRoot, setSyncRoot] = useState<string>(device.syncRoot)
  const onSubmit = async (): Promise<void> => {
    const json = { name, syncRoot }
    if (!(await change.run((ask) => ask(`${path}/${device.id}`, { method: "PATCH", json })))) return
    onChanged()
    onClose()
  }
  return (
    <Modal title={`Change ${device.name}`} onClose={onClose}>
      <Form change={change} submit="Save" onSubmit={() => void onSubmit()}>
        <TextField label="Name" name="name" required maxLength={100} value={name} onInput={setName} />
        <TextField
          label="Folder"
          hint="Where it keeps its files"
          name="syncRoot"
          required
          maxLength={1024}
          autocapitalize="off"
          value={syncRoot}
          onInput={setSyncRoot}
        />
      </Form>
    </Modal>
  )
}
