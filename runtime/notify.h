/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/notify.h - tell the service manager how far we are: sd_notify(3) without its library */
#pragma once

/* notify() - one or more "NAME=value" lines to $NOTIFY_SOCKET; nothing happens without one, and a
 * manager that does not listen is its own affair. */
void notify(const char *lines);

/* notify_reloading() - RELOADING=1 with the time it began, as Type=notify-reload wants it. */
void notify_reloading(void);
