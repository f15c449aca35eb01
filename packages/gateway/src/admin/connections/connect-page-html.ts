import type { UserConnection } from '../../servers/connections/connection-store.ts'
import { escape, type ApprovalPageHtml, toPage, toTime } from '../http/approval-page-html.ts'

/** The connection of a server, as one person sees it. */
interface ConnectView {
  readonly server: string
  /** The host of the server. */
  readonly host: string
  readonly person: string
  readonly connection: UserConnection | undefined
  /** The error of the last attempt. */
  readonly problem?: string | undefined
}

/** Returns the page on which a person connects a server to their account. It needs no scripts. */
export function connectPage({ server, host, person, connection, problem }: ConnectView): ApprovalPageHtml {
  const { account, scopes, since, issuer } = connection ?? {}
  const rows: readonly (readonly [string, string | undefined])[] = [
    ['Server', `${server} at ${host}`],
    ['You are', person],
    ['Connected', connection ? 'yes' : 'no'],
    ['Account', account],
    ['Signed in at', issuer],
    ['Scopes', scopes?.join(' ')],
    ['Since', since === undefined ? undefined : toTime(since)],
  ]
  const facts = rows.flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [`<dt>${name}</dt><dd>${escape(value)}</dd>`],
  )
  const alert = problem === undefined ? '' : `<p class="note" role="alert">${escape(problem)}</p>`
  return toPage(
    connection ? `${server} is connected` : `Connect ${server}?`,
    `${alert}<dl>${facts.join('')}</dl>
${connection ? '' : `<p>You sign in at the server's own page. Tools of ${escape(server)} that you call here then act as your account there. Calls of other users do not.</p>`}
<form method="post">
<button class="approve" name="action" value="connect">${connection ? 'Connect again' : 'Connect'}</button>
${connection ? '<button name="action" value="disconnect">Disconnect</button>' : ''}
</form>
<p><a href="/">Console</a></p>`,
  )
}

/** Returns a page that leads to the authorization server. The content policy does not allow a form to do so. */
export function continuePage(server: string, url: string): ApprovalPageHtml {
  const to = escape(url)
  return toPage(
    'One moment',
    `<p>You sign in for ${escape(server)} at ${escape(new URL(url).host)}.</p><p><a href="${to}" rel="noreferrer">Continue</a></p>`,
    `<meta http-equiv="refresh" content="0;url=${to}">`,
  )
}
