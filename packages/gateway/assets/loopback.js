// Preloaded into servers that have no option for the address they listen on (`node --import`).
// Every listening socket is bound to 127.0.0.1, whatever the program asks for; pipes and given handles stay.
import net from 'node:net'

// oxlint-disable-next-line typescript/unbound-method -- it is called on the server that it was called on
const { listen } = net.Server.prototype

net.Server.prototype.listen = function listenOnLoopback(...args) {
  return Reflect.apply(listen, this, toLoopback(args))
}

/** Turns any form of `server.listen` that opens a port into `listen({ port, host })`. */
function toLoopback(args) {
  const [first] = args
  const callback = args.findLast((arg) => typeof arg === 'function')
  const rest = callback ? [callback] : []
  if (typeof first === 'object' && first !== null) {
    const opensPort = !('path' in first) && !('fd' in first) && !('handle' in first) && !('_handle' in first)
    return opensPort || first.port !== undefined ? [{ ...first, host: '127.0.0.1', ipv6Only: false }, ...rest] : args
  }
  if (typeof first === 'string' && !/^\d+$/.test(first.trim())) return args
  const backlog = args.slice(1).find((arg) => typeof arg === 'number')
  const port = typeof first === 'function' ? 0 : Number(first ?? 0)
  return [{ port, host: '127.0.0.1', ...(backlog === undefined ? {} : { backlog }) }, ...rest]
}
