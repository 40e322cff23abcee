import { useEffect } from "preact/hooks"
import { useNavigation } from "../view/Navigation.tsx"
import { SessionList } from "./SessionList.tsx"
import { SessionView } from "./SessionView.tsx"

/** Agents: the sessions of the key's owner, and the transcript of one of them. */
export const AgentsRoom = () => {
  const { view } = useNavigation()
  useEffect(() => {
    document.title = "Agents · Signalbox"
    return () => {
      document.title = "Signalbox"
    }
  }, [])
  return (
    <div class="agents">
      {view.session === undefined ? <SessionList /> : <SessionView key={view.session} id={view.session} />}
    </div>
  )
}
