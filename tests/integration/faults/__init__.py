# SPDX-License-Identifier: Apache-2.0
"""Services that misbehave, run in the service's place inside its container.

`altered_service` is the real service with altered replies: delayed, or with impossible decisions.
`garbage` is no service at all: it sends bytes, frames and messages without meaning.
"""
