import { isSecureUrl } from './oauth.ts'
import { found, type Reading } from './reading.ts'
import type { ServerInput } from './schema/servers.ts'

/** Checks the other fields of a server with `oauth`. */
export function checkServerOAuth({ source }: Reading, name: string, input: ServerInput): void {
  const { oauth, url, headers = {}, command, package: from } = input
  if (!oauth) return
  const at = ['servers', name, 'oauth']
  if (input.per === 'shared')
    source.report(
      ['servers', name, 'per'],
      'found "shared" with "oauth", expected "user": the account of one user must not serve others',
    )
  if (url === undefined || command !== undefined || from !== undefined)
    source.report(at, 'found "oauth", expected it for a server that is reached by "url" and not started', {
      atKey: true,
    })
  else if (!isSecureUrl(url, true))
    source.report(
      ['servers', name, 'url'],
      `${found(source, ['servers', name, 'url'])} with "oauth", expected https, or http on loopback`,
    )
  const header = Object.keys(headers).find((one) => one.toLowerCase() === 'authorization')
  if (header !== undefined)
    source.report(
      ['servers', name, 'headers', header],
      'found it beside "oauth", expected one of them: a request has one credential',
      { atKey: true },
    )
  if (oauth.pkce !== undefined && oauth.issuer === undefined)
    source.report([...at, 'pkce'], 'found it without "issuer", expected both: you vouch for one authorization server', {
      atKey: true,
    })
  if (oauth.clientSecret !== undefined && oauth.clientId === undefined)
    source.report([...at, 'clientSecret'], 'found it without "clientId", expected both', { atKey: true })
  else if (oauth.clientSecret !== undefined && oauth.issuer === undefined)
    source.report(
      [...at, 'clientSecret'],
      'found it without "issuer", expected both: the server could name its own authorization server, and get the secret',
      { atKey: true },
    )
}
