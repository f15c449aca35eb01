import { linkTo } from './address.ts'
import { toVisible } from './exact-text.ts'
import { count } from './format.ts'
import { createListeners } from './store.ts'
import type { WaitingApprovalRow } from './wire.ts'

/** `absent`: the browser does not support notifications, or not on this page. `denied`: the person has blocked them. */
type NoticeState = 'absent' | 'denied' | 'off' | 'on'

const STORED = 'toolgate:notify'
const changed = createListeners<void>()

/** Desktop notifications about new requests, which a person turns on with a button. */
export const desktopNotices = {
  get state(): NoticeState {
    if (!('Notification' in globalThis) || !globalThis.isSecureContext) return 'absent'
    if (Notification.permission === 'denied') return 'denied'
    return Notification.permission === 'granted' && localStorage.getItem(STORED) === 'on' ? 'on' : 'off'
  },
  async turn(to: 'on' | 'off'): Promise<void> {
    if (to === 'on') await Notification.requestPermission()
    localStorage.setItem(STORED, to)
    changed.call()
  },
  subscribe: changed.add,
  /** Notifies a person of new requests if they look at another window. */
  show(fresh: readonly WaitingApprovalRow[]): void {
    if (this.state !== 'on' || fresh.length === 0 || document.hasFocus()) return
    const { title, body } = wordsOf(fresh)
    // Only one notification is visible: a later one replaces it.
    const notice = new Notification(title, { body, tag: 'toolgate-approvals', icon: './gate.svg' })
    notice.addEventListener('click', () => {
      focus()
      const [only, ...others] = fresh
      location.hash = linkTo('approvals', others.length === 0 && only ? { id: only.id } : {})
      notice.close()
    })
  },
}

/** Returns the text of a notification. Invisible characters are marked, as on the page. */
function wordsOf(fresh: readonly Pick<WaitingApprovalRow, 'tool' | 'user'>[]): { title: string; body: string } {
  const [first] = fresh
  if (!first || fresh.length > 1)
    return { title: `${count(fresh.length, 'call')} wait for approval`, body: namesOf(fresh) }
  return {
    title: `${visible(first.tool)} waits for approval`,
    body: first.user === undefined ? '' : `for ${visible(first.user)}`,
  }
}

const MAX_NAMES = 3

function namesOf(fresh: readonly Pick<WaitingApprovalRow, 'tool'>[]): string {
  const names = [...new Set(fresh.map(({ tool }) => visible(tool)))]
  return names.length > MAX_NAMES ? `${names.slice(0, MAX_NAMES).join(', ')} and others` : names.join(', ')
}

function visible(text: string): string {
  return toVisible(text.slice(0, 200))
}
