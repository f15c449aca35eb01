import type { Approval } from '@toolgate/core'
import { trailLines } from '@toolgate/core/call'
import { toJsonText } from '@toolgate/values/json'
import type { ApprovalNeeds } from '../../model/rows.ts'

/** A page, and its style, which the Content-Security-Policy allows by hash. */
export interface ApprovalPageHtml {
  readonly html: string
  readonly style: string
}

/** An approval, as one person sees it. */
export interface ApprovalView {
  readonly approval: Approval
  readonly person: string
  readonly mayDecide: boolean
  /** The people that it needs and has. Absent: any one approver. */
  readonly needs?: ApprovalNeeds
  /** The roles for which somebody must still approve. */
  readonly rolesMissing?: readonly string[]
  /** The fields of the input that the person may change. */
  readonly fields: readonly EditField[]
  /** Whether only another person may approve it. */
  readonly needsOther: boolean
  /** Whether the login is too old to approve it. */
  readonly needsLogin: boolean
  /** The link for logging in without a key. */
  readonly oidc: LoginLink | undefined
}

/** A field of the input, for a form. `isText`: its value is a text; otherwise it is JSON. */
export interface EditField {
  readonly path: readonly string[]
  readonly isText: boolean
  readonly text: string
}

/** The form field with a whole change. `edit:<path>` has one changed field. */
export const EDIT_FIELD = 'edit'

/** A login at an authorization server that returns to the page. */
export interface LoginLink {
  readonly name: string
  readonly href: string
}

const STYLE = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0 auto; max-width: 44rem; padding: 2rem 1.25rem; }
h1 { font-size: 1.4rem; margin: 0 0 1rem; }
h2 { font-size: 1.1rem; margin: 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .35rem 1.25rem; margin: 0 0 1rem; }
dt { opacity: .7; }
dd { margin: 0; overflow-wrap: anywhere; }
pre { border: 1px solid #8886; border-radius: .4rem; margin: .25rem 0 1rem; max-height: 24rem; overflow: auto; padding: .75rem; white-space: pre-wrap; overflow-wrap: anywhere; }
label { display: block; margin: .75rem 0; }
input, textarea { box-sizing: border-box; display: block; font: inherit; margin-top: .25rem; padding: .5rem; width: 100%; }
button { border: 1px solid #8888; border-radius: .4rem; cursor: pointer; font: inherit; margin: .5rem .5rem 0 0; min-height: 2.75rem; padding: .5rem 1.25rem; }
button.approve { background: #1f7a46; border-color: #1f7a46; color: #fff; }
.note { border-left: .25rem solid #d99a2b; padding-left: .75rem; }
`

export function toPage(title: string, body: string, head: string = ''): ApprovalPageHtml {
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(title)} · Toolgate</title>
<style>${STYLE}</style>${head}
</head>
<body>
<main>
<h1>${escape(title)}</h1>
${body}
</main>
</body>
</html>
`
  return { html, style: STYLE }
}

export function messagePage(title: string, text: string): ApprovalPageHtml {
  return toPage(title, `<p role="status">${escape(text)}</p>`)
}

export function reloadPage(): ApprovalPageHtml {
  return toPage('One moment', '<p><a href="">Continue</a></p>', '<meta http-equiv="refresh" content="0">')
}

/** Returns the same page for every link, so that it does not reveal whether the approval exists. */
export function loginPage(
  oidc: LoginLink | undefined,
  problem?: string,
  label: string = 'Console key',
): ApprovalPageHtml {
  return toPage(
    'Log in',
    `${problem === undefined ? '' : `<p class="note" role="alert">${escape(problem)}</p>`}
${oidc === undefined ? '' : `<p>${linkTo(oidc)}</p>`}
<form method="post">
<label>${label} <input name="key" type="password" autocomplete="current-password" required autofocus></label>
<button type="submit">Log in</button>
</form>`,
  )
}

function linkTo({ name, href }: LoginLink, again = ''): string {
  return `<a href="${escape(href)}">Log in${again} with ${escape(name)}</a>`
}

export function confirmPage(view: ApprovalView): ApprovalPageHtml {
  const { approval } = view
  const isPending = approval.status === 'pending'
  const title = isPending ? 'Approve this call?' : `This call is ${approval.status}`
  return toPage(title, `${facts(view)}${isPending ? decideForm(view) : ''}`)
}

function facts({ approval, person, needs, rolesMissing = [] }: ApprovalView): string {
  const { tool, user, tenant, keyMadeBy, behind, why, reason, decidedBy, expiresAt, requestedAt, chat } = approval
  const { edit, status } = approval
  const rows: readonly (readonly [string, string | undefined])[] = [
    ['Tool', tool],
    ['Asked by', tenant === undefined ? (user ?? 'unknown') : `${user ?? 'unknown'} of ${tenant}`],
    ['Key made by', keyMadeBy],
    ['Also behind it', behind?.join(', ')],
    ['Chat', chat],
    ['Asked at', toTime(requestedAt)],
    ['Valid until', toTime(expiresAt)],
    ['Why', why],
    ['Approvals', needs && progressText(needs, status === 'pending' ? rolesMissing : [])],
    ['Changed', edit && `${edit.by} changed the input: ${toJsonText(edit.input) ?? ''}`],
    ['Decided by', decidedBy],
    ['Reason', reason],
    ['You are', person],
  ]
  const shown = rows.flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [`<dt>${name}</dt><dd>${escape(value)}</dd>`],
  )
  const input = toJsonText(approval.input, 2) ?? ''
  const lines = approval.trail ? trailLines(approval.trail) : []
  const trail = lines.map((line) => `<li>${escape(line)}</li>`).join('')
  return `<dl>${shown.join('')}</dl>
${trail === '' ? '' : `<h2>What the run has done</h2>\n<ul>${trail}</ul>`}
<h2>Arguments</h2>
<pre tabindex="0">${escape(input)}</pre>
`
}

/** Returns who has approved, of how many: `1 of 2, by ada. Still needed: security.` */
function progressText({ count, approvedBy }: ApprovalNeeds, missing: readonly string[]): string {
  const by = approvedBy.length === 0 ? '' : `, by ${approvedBy.map((one) => one.by).join(' and ')}`
  return `${approvedBy.length} of ${count}${by}${missing.length === 0 ? '' : `. Still needed: ${missing.join(', ')}`}`
}

/** Returns the form's fields for the input, or the change that an earlier approver made. */
function editForm({ approval: { edit }, fields }: ApprovalView): string {
  if (edit)
    return `<p class="note">You approve the call as ${escape(edit.by)} changed it.</p>
<input type="hidden" name="${EDIT_FIELD}" value="${attribute(toJsonText(edit.input) ?? '')}">`
  if (fields.length === 0) return ''
  const rows = fields.map(({ path, isText, text }) => {
    const name = attribute(`${EDIT_FIELD}:${JSON.stringify(path)}`)
    const label = escape(path.join('.'))
    return isText
      ? `<label>${label} <textarea name="${name}" rows="${Math.min(10, text.split('\n').length)}">\n${attribute(text)}</textarea></label>`
      : `<label>${label} <input name="${name}" value="${attribute(text)}" autocomplete="off"></label>`
  })
  return `<details><summary>Change the input before it runs</summary>${rows.join('\n')}</details>`
}

/** Escapes a text that comes back as it is. */
function attribute(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => ESCAPES[sign] ?? sign)
}

/** The form's first button is disabled, so that Enter in a field does not approve. */
const NO_ENTER = '<button disabled hidden></button>'

function decideForm(view: ApprovalView): string {
  const { mayDecide, needsOther, needsLogin, oidc, needs, approval } = view
  if (!mayDecide) return '<p class="note">You may not decide this. It waits for an approver.</p>'
  const login =
    needsLogin && oidc ? `<p class="note">The policy wants a fresh login. ${linkTo(oidc, ' again')}</p>` : ''
  const key = needsLogin
    ? '<label>Your console key again: the policy wants a fresh login <input name="key" type="password" autocomplete="current-password"></label>'
    : ''
  const hasApproved = needs?.mayTakeBack === true
  const words = approval.edit ? 'Approve the changed call once' : 'Approve this call once'
  const approve = hasApproved
    ? '<button name="decision" value="revoke">Take my approval back</button>'
    : needsOther
      ? ''
      : `<button class="approve" name="decision" value="approve">${words}</button>`
  const edit = hasApproved || needsOther ? '' : editForm(view)
  return `<p>You approve this exact input, once. Secrets are masked.</p>
${hasApproved ? '<p class="note">You have approved it. It waits for another person.</p>' : ''}
${needsOther ? '<p class="note">Another person must approve it, as you asked for it yourself or made the key that did.</p>' : ''}
${login}
<form method="post">
${NO_ENTER}
${key}
${edit}
<label>Reason (optional) <input name="reason" maxlength="500" autocomplete="off"></label>
${approve}<button name="decision" value="reject">Reject</button>
</form>
<p><a href="/#/approvals?id=${encodeURIComponent(approval.id)}">Open it in the console</a>, where you can also compare, approve equal calls and change any field.</p>`
}

export function toTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Escapes a text. Hidden and reordering characters become their code, so that no text can imitate another. */
export function escape(text: string): string {
  return text
    .replace(/[&<>"']/g, (sign) => ESCAPES[sign] ?? sign)
    .replace(/[\p{Cf}\p{Cc}]/gu, (sign) => (sign === '\n' ? sign : `\\u{${sign.codePointAt(0)?.toString(16)}}`))
}
