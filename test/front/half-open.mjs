// Opens argv[3] connections to port argv[2], sends half a request by each (argv[4]), says how many it has, and holds them.
import { connect } from "node:net"

const [port, count] = process.argv.slice(2, 4).map(Number)
const half = process.argv[4]
const sockets = []
let closed = 0

const open = () =>
  new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1" }, () => {
      socket.write(half)
      resolve()
    })
    socket.on("error", resolve)
    socket.on("close", () => {
      closed += 1
      resolve()
    })
    sockets.push(socket)
  })

while (sockets.length < count)
  await Promise.all(Array.from({ length: Math.min(200, count - sockets.length) }, open))
process.send({ open: sockets.length - closed })
process.on("message", () => {
  for (const socket of sockets) socket.destroy()
  process.disconnect()
})
