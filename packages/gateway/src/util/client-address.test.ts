import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createClientAddresses, isProxyRange } from './client-address.ts'

const from = (remoteAddress: string, forwarded?: string) => ({
  headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
  socket: { remoteAddress },
})

describe('createClientAddresses', () => {
  it('reads X-Forwarded-For of listed proxies only', () => {
    const none = createClientAddresses()
    assert.equal(none.of(from('127.0.0.1', '192.0.2.7')), '127.0.0.1')
    const addresses = createClientAddresses(['127.0.0.1', '10.0.0.0/8'])
    assert.equal(addresses.of(from('127.0.0.1', '192.0.2.7')), '192.0.2.7')
    assert.equal(addresses.of(from('::ffff:10.1.2.3', '192.0.2.7')), '192.0.2.7')
    assert.equal(addresses.of(from('192.0.2.8', '192.0.2.7')), '192.0.2.8')
    assert.equal(addresses.of(from('127.0.0.1')), '127.0.0.1')
  })

  it('takes the last address that no listed proxy has, as clients can write those before it', () => {
    const addresses = createClientAddresses(['127.0.0.1', '10.0.0.0/8', 'fd00::/8'])
    assert.equal(addresses.of(from('127.0.0.1', '203.0.113.9, 192.0.2.7, 10.0.0.4')), '192.0.2.7')
    assert.equal(addresses.of(from('fd00::1', '203.0.113.9,2001:db8::1,::ffff:10.0.0.4')), '2001:db8::1')
    assert.equal(addresses.of(from('127.0.0.1', '10.0.0.5, 10.0.0.4')), '10.0.0.5')
  })

  it('stops at what is no address', () => {
    const addresses = createClientAddresses(['127.0.0.1', '10.0.0.0/8'])
    for (const text of ['', ' ', 'unknown', '192.0.2.7:4711', '"192.0.2.7"', '192.0.2.7 x', '192.0.2.7,'])
      assert.equal(addresses.of(from('127.0.0.1', text)), '127.0.0.1', text)
    assert.equal(addresses.of(from('127.0.0.1', '192.0.2.7, evil, 10.0.0.4')), '10.0.0.4')
  })

  it('knows its proxies', () => {
    const { isProxy } = createClientAddresses(['10.0.0.0/8', '::1'])
    const known = ['10.9.9.9', '::ffff:10.9.9.9', '::1', '192.0.2.1', '127.0.0.1', 'x', undefined].map(isProxy)
    assert.deepEqual(known, [true, true, true, false, false, false, false])
  })
})

describe('isProxyRange', () => {
  it('accepts addresses and ranges, but not everybody', () => {
    for (const text of ['127.0.0.1', '10.0.0.0/8', '192.0.2.1/32', '::1', 'fd00::/8', '2001:db8::/128'])
      assert.ok(isProxyRange(text), text)
    for (const text of [
      '',
      '*',
      'loopback',
      '0.0.0.0/0',
      '::/0',
      '10.0.0.0/33',
      '::1/129',
      '10.0.0.0/',
      '10.0.0.0/08',
      '10.0.0.0/8/8',
      'fe80::1%eth0',
      '10.0.0.0/-1',
      'tools.example.com',
    ])
      assert.ok(!isProxyRange(text), text)
    assert.throws(() => createClientAddresses(['0.0.0.0/0']), RangeError)
  })
})
