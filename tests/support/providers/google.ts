import type { Provider } from './provider.ts'

/** Google: no groups, no end of sessions, and access tokens that nobody else can read. */
export const google: Provider = {
  name: 'Google',
  path: '',
  namesIssuer: true,
  lifeSeconds: 3599,
  people: {
    ann: { id: '110169484474386276334', name: 'Ann Archer', email: 'ann@acme.com', groups: [] },
    bob: { id: '109876543210987654321', name: 'Bob Baker', email: 'bob@acme.com', groups: [] },
    // A private account has no "hd".
    eve: { id: '108888777766665555444', name: 'Eve Else', email: 'eve@gmail.com', groups: [] },
  },
  endpoints: { authorize: '/o/oauth2/v2/auth', token: '/token', keys: '/oauth2/v3/certs', userinfo: '/v1/userinfo' },
  documents: (base) => ({
    '/.well-known/openid-configuration': {
      issuer: base,
      authorization_endpoint: `${base}/o/oauth2/v2/auth`,
      device_authorization_endpoint: `${base}/device/code`,
      token_endpoint: `${base}/token`,
      userinfo_endpoint: `${base}/v1/userinfo`,
      revocation_endpoint: `${base}/revoke`,
      jwks_uri: `${base}/oauth2/v3/certs`,
      response_types_supported: ['code', 'token', 'id_token', 'code token', 'code id_token', 'none'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['RS256'],
      scopes_supported: ['openid', 'email', 'profile'],
      token_endpoint_auth_methods_supported: ['client_secret_post', 'client_secret_basic'],
      code_challenge_methods_supported: ['plain', 'S256'],
      authorization_response_iss_parameter_supported: true,
    },
  }),
  // No "auth_time", also where "max_age" is asked for.
  idToken: ({ id, name, email }, { client }) => ({
    azp: client,
    sub: id,
    ...(email.endsWith('@gmail.com') ? {} : { hd: email.split('@')[1] }),
    email,
    email_verified: true,
    at_hash: 'c0RSVLxJ5FZ9a9Fq7A0v9A',
    name,
    picture: 'https://lh3.googleusercontent.com/a/photo',
  }),
  accessToken: () => undefined,
  opaquePrefix: 'ya29.a0AfB_',
  userinfo: ({ id, name, email }) => ({ sub: id, name, email, email_verified: true }),
}
