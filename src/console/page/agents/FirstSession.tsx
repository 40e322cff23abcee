import type { AgentInfo } from "#schemas/agents/AgentInfo.ts"
import { useAnswer } from "../api/UseAnswer.ts"
import { Code } from "../parts/Code.tsx"

/** Instructions for the first session, for a user without any. */
export const FirstSession = () => {
  const { data } = useAnswer<AgentInfo>("/api/v1/agent")
  return (
    <section class="narrow">
      <p>
        No sessions yet. A session begins when <code>signalbox-agent</code> is started in a directory: the
        model thinks here, and reads, writes and runs commands there, as far as you let it.
      </p>
      {data !== undefined && (
        <div class="site-setup">
          <section>
            <h2>Get the client</h2>
            {data.install.binary === "" ? (
              <>
                <p class="hint">{data.downloads_note}. Until then, in a clone of this server:</p>
                <Code of="command" text={data.install.source} />
              </>
            ) : (
              <Code of="command" text={data.install.binary} />
            )}
          </section>
          <section>
            <h2>Begin</h2>
            <Code of="commands" text={`signalbox-agent login\nsignalbox-agent`} />
            <p class="hint">
              {data.default_model === null
                ? "This key opens no model that can call tools, or has nothing to pay with."
                : `It asks ${data.default_model}, where you name no other model.`}
            </p>
          </section>
        </div>
      )}
    </section>
  )
}
