import { ManagedRuntime } from "effect"
import { type ServerOptions, type ServerProcess, startServer } from "./ServerProcess.ts"
import { TestStores } from "./TestStores.ts"

/**
 * A server process with databases of its own in the stores of this run: it starts in half the time, for tests that look at the
 * server alone. `startServer` gives it embedded stores, as an operator without settings has.
 */
export const startOnStoresOfRun = async (options: ServerOptions = {}): Promise<ServerProcess> => {
  const runtime = ManagedRuntime.make(TestStores.layerEmpty)
  try {
    const { clickhouseUrl, databaseUrl } = await runtime.runPromise(TestStores)
    const env = { DATABASE_URL: databaseUrl, CLICKHOUSE_URL: clickhouseUrl, ...options.env }
    const server = await startServer({ ...options, env })
    const dispose = async (): Promise<void> => {
      await server.dispose()
      await runtime.dispose()
    }
    return { ...server, dispose }
  } catch (error) {
    await runtime.dispose()
    throw error
  }
}
