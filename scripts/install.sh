#!/usr/bin/env bash
# Installs Spoke on a machine without its packages, and takes it away again without a trace.
set -euo pipefail

usage() {
  cat <<'EOT'
usage: scripts/install.sh --role node|server [--from SOURCE] [--config FILE] [OPTION...]
       scripts/install.sh --role node|server --uninstall [OPTION...]

  --role node      the agent, the CNI plugin and spokectl
  --role server    the IPAM server and spokectl
  --from SOURCE    a build folder, a folder with the .deb packages, or the image's tar file, which brings
                   its own libraries and so fits any distribution; build/release without it
  --config FILE    becomes /etc/spoke/netagent.yaml or ipam-server.yaml; its unit is then started
  --prefix DIR     where programs go; /usr without it
  --root DIR       install below DIR, as for a disk image: no user is made, no unit is started
  --dry-run        say what would be done, and do nothing
  --uninstall      stop the unit, remove every file, folder and user that was installed, and all state;
                   refused while pods use this node's links

To do it again changes what differs, and nothing else. On Debian 12 rather install the packages of
scripts/packages.sh. Exit status: 0 done, 1 failed, 2 wrong usage.
EOT
}

say() { printf '%s\n' "$*"; }

fail() {
  printf 'install.sh: %s\n' "$*" >&2
  exit 1
}

wrong_usage() {
  printf 'install.sh: %s\n\n' "$*" >&2
  usage >&2
  exit 2
}

readonly server_user=spoke-ipam-server
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
role='' from=$here/build/release config='' prefix=/usr root='' dry=no uninstall=no

parse() {
  while (($# > 0)); do
    case $1 in
      -h | --help) usage && exit 0 ;;
      --dry-run) dry=yes ;;
      --uninstall) uninstall=yes ;;
      --role | --from | --config | --prefix | --root)
        if (($# < 2)) || [[ -z $2 ]]; then wrong_usage "$1 needs a value"; fi
        declare -g "${1#--}=$2"
        shift
        ;;
      *) wrong_usage "there is no option $1" ;;
    esac
    shift
  done
  case $role in
    node) daemon=spoke-netagent components=(spoke-cni spoke-netagent spokectl) ;;
    server) daemon=spoke-ipam-server components=(spoke-ipam-server spokectl) ;;
    '') wrong_usage '--role says what this machine is: node or server' ;;
    *) wrong_usage "--role is node or server, not $role" ;;
  esac
  if [[ $prefix != /* ]]; then wrong_usage "--prefix $prefix: give a path from /"; fi
  prefix=${prefix%/}
  from=$(realpath -m -- "$from")
  if [[ -n $root ]]; then root=$(realpath -m -- "$root"); fi
  settings=/etc/spoke/${daemon#spoke-}.yaml
  list=$prefix/share/spoke/installed-$role.list
  # This is where systemd looks, whatever the prefix.
  case $prefix in
    /usr | /usr/local) units=$prefix/lib/systemd/system tmpfiles=$prefix/lib/tmpfiles.d ;;
    *) units=/etc/systemd/system tmpfiles=/etc/tmpfiles.d ;;
  esac
}

check_machine() {
  if [[ $dry == no && -z $root && $EUID != 0 ]]; then
    fail "not root, and only root can write to $prefix: run it with sudo, or look with --dry-run"
  fi
  # shellcheck disable=SC2016  # The ${} are dpkg-query's.
  if [[ -z $root ]] && [[ $(dpkg-query -W -f '${db:Status-Status}' "$daemon" 2>/dev/null) == installed ]]; then
    fail "$daemon is installed as a Debian package here: upgrade or remove it with apt"
  fi
}

has_systemd() { [[ -z $root && -d /run/systemd/system ]]; }

# do_it WHAT COMMAND...: or only say so.
do_it() {
  if [[ $dry == yes ]]; then say "would $1" && return; fi
  "${@:2}"
}

# What to install, in $stage below the paths it is for ----------------------------------------------

stage_build() {
  local component
  [[ -f $from/cmake_install.cmake ]] || fail "$from is no build: build it with scripts/build.sh release"
  for component in "${components[@]}"; do
    DESTDIR=$stage cmake --install "$from" --strip --prefix "$prefix" --component "$component" >"$work/log" 2>&1 ||
      { cat "$work/log" >&2 && fail "cannot install $component from $from: is it built?"; }
  done
}

stage_packages() {
  local component packages
  mkdir -p "$work/deb"
  for component in "${components[@]}"; do
    packages=("$from/$component"_*.deb)
    [[ -f ${packages[0]} ]] || fail "$from has no package of $component"
    ((${#packages[@]} == 1)) || fail "$from has ${#packages[@]} packages of $component: leave one"
    dpkg-deb -x "${packages[0]}" "$work/deb" || fail "cannot unpack ${packages[0]}"
  done
  mkdir -p "$stage$prefix"
  cp -r "$work/deb/usr/." "$stage$prefix/"
  cp -r "$work/deb/etc" "$stage/" 2>/dev/null || true
}

# wrap PROGRAM: starts it with the libraries that came with it.
wrap() {
  cat >"$stage$prefix/bin/$1" <<EOT
#!/bin/sh
exec $prefix/lib/spoke/lib/${loader##*/} --argv0 "\$0" --library-path $prefix/lib/spoke/lib $prefix/lib/spoke/bin/$1 "\$@"
EOT
  chmod 0755 "$stage$prefix/bin/$1"
}

stage_image() {
  local blob loader program
  mkdir -p "$work/layout" "$work/image"
  tar -xf "$from" -C "$work/layout" 2>/dev/null || fail "$from is no tar file"
  [[ -f $work/layout/index.json ]] || fail "$from is no image: make it with scripts/image.sh"
  # One manifest and one layer: the largest blob is the layer.
  blob=$(find "$work/layout/blobs/sha256" -type f -printf '%s %p\n' | sort -n | tail -n 1 | cut -d' ' -f2)
  tar -xzf "$blob" -C "$work/image" || fail "$from: its layer cannot be unpacked"
  loader=$(find "$work/image/usr" -name 'ld-linux*' -type f | head -n 1)
  [[ -n $loader ]] || fail "$from holds no loader: make it with scripts/image.sh"
  mkdir -p "$stage$prefix"/{bin,lib/cni,lib/spoke/bin,lib/spoke/lib,share/spoke}
  find "$work/image/usr/lib" -name '*.so*' -not -path '*/xtables/*' -type f -exec cp -t "$stage$prefix/lib/spoke/lib" {} +
  cp -n "$loader" "$stage$prefix/lib/spoke/lib/"
  chmod 0755 "$stage$prefix/lib/spoke/lib/${loader##*/}"
  for program in "$daemon" spokectl; do
    cp "$work/image/usr/bin/$program" "$stage$prefix/lib/spoke/bin/"
    wrap "$program"
  done
  ln -s spokectl "$stage$prefix/bin/kubectl-spoke"
  install -D -m 0644 "$here/conf/systemd/$daemon.service" "$stage$units/$daemon.service"
  install -D -m 0644 "$here/conf/systemd/$daemon.default" "$stage/etc/default/$daemon"
  mkdir -p "$stage/etc/spoke/tls"
  if [[ $role == server ]]; then
    install -D -m 0644 "$here/conf/systemd/$daemon.tmpfiles" "$stage$tmpfiles/$daemon.conf"
    install -D -m 0644 "$here/conf/systemd/spoke-etcd.service" "$stage$units/spoke-etcd.service"
    return
  fi
  mkdir -p "$stage/etc/cni/net.d"
  cp "$work/image/usr/lib/cni/spoke" "$stage$prefix/lib/cni/"
  cp "$work/image/usr/share/spoke/10-spoke.conflist" "$stage$prefix/share/spoke/"
}

# Units name programs by their paths, and lie where systemd looks.
adapt_units() {
  local unit=$stage$units/$daemon.service made=$stage$prefix/lib
  if [[ $units != "$prefix/lib/systemd/system" && -d $made/systemd ]]; then
    mkdir -p "$stage$units"
    mv "$made/systemd/system/"* "$stage$units/"
    rm -r "$made/systemd"
    if [[ -d $made/tmpfiles.d ]]; then
      mkdir -p "$stage$tmpfiles"
      mv "$made/tmpfiles.d/"* "$stage$tmpfiles/"
      rmdir "$made/tmpfiles.d"
    fi
  fi
  sed -i "s|/usr/bin/spoke|$prefix/bin/spoke|g; s|/usr/share/doc|$prefix/share/doc|g" "$unit"
}

fill_stage() {
  stage=$work/stage
  mkdir -p "$stage$prefix/share/spoke"
  if [[ -f $from ]]; then
    stage_image
  elif compgen -G "$from/*.deb" >/dev/null; then
    stage_packages
  elif [[ -d $from ]]; then
    stage_build
  else
    fail "$from: there is no such folder or file; build first (scripts/build.sh release), or name a source with --from"
  fi
  adapt_units
  if [[ -n $config ]]; then
    [[ -r $config ]] || fail "$config cannot be read"
    install -D -m 0644 "$config" "$stage$settings"
  fi
}

# Before anything is changed. A value that names a variable is known only to the unit.
check_config() {
  # shellcheck disable=SC2016  # The braces are looked for.
  if [[ -z $config || -n $root || $dry == yes ]] || grep -qF '${' "$config"; then return; fi
  local program=$stage$prefix/bin/$daemon output
  if [[ -f $from ]]; then return; fi
  # What the unit has made before its program starts.
  mkdir -p /run/spoke
  if [[ $role == node ]]; then mkdir -p /run/spoke/netagent; fi
  output=$("$program" --config "$config" --check-config 2>&1) || fail "$config is refused: $output"
}

# Files -----------------------------------------------------------------------------------------------

# The list holds what is ours: "file PATH", "folder PATH" where we made it, "user NAME".
listed() {
  if [[ -f $root$list ]]; then sed -n "s/^$1 //p" "$root$list"; fi
}

# put FILE: from the stage, by rename, since it may be running.
put() {
  local target=$root$1
  cp -P --preserve=mode "$stage$1" "$target.new.$$"
  chown -h 0:0 "$target.new.$$" 2>/dev/null || true
  mv -T "$target.new.$$" "$target"
}

copy_files() {
  local path folders=() files=() made=() old
  mapfile -t folders < <(cd "$stage" && find . -mindepth 1 -type d -printf '/%P\n' | sort)
  mapfile -t files < <(cd "$stage" && find . -not -type d -printf '/%P\n' | sort)
  mapfile -t made < <(listed folder)
  mapfile -t old < <(listed file)
  for path in "${folders[@]}"; do
    if [[ -d $root$path ]]; then continue; fi
    do_it "make the folder $path" mkdir -m 0755 "$root$path"
    made+=("$path")
  done
  # An administrator's own variables and configuration stay, unless --config brings another.
  for path in "${files[@]}"; do
    if cmp -s "$stage$path" "$root$path" && [[ $(stat -c %a "$stage$path") == $(stat -c %a "$root$path") ]]; then continue; fi
    if [[ $path == /etc/default/* && -e $root$path ]]; then continue; fi
    do_it "write $path" put "$path"
    changed=yes
  done
  local -A new=()
  for path in "${files[@]}"; do new[$path]=yes; done
  for path in "${old[@]}"; do
    if [[ -n ${new[$path]:-} ]]; then continue; fi
    # A configuration that an earlier run has brought is still ours.
    if [[ $path == "$settings" ]]; then
      files+=("$path")
    else
      do_it "remove $path" rm -f "$root$path"
    fi
  done
  do_it "write $list" write_list
}

write_list() {
  {
    printf 'file %s\n' "${files[@]}" | sort -u
    if ((${#made[@]} > 0)); then printf 'folder %s\n' "${made[@]}" | sort -u; fi
    if [[ $made_user == yes ]]; then say "user $server_user"; fi
  } >"$root$list.new.$$"
  mv "$root$list.new.$$" "$root$list"
}

# Users and units -------------------------------------------------------------------------------------

make_user() {
  made_user=no
  if [[ -n $(listed user) ]]; then made_user=yes; fi
  if [[ $role != server || -n $root ]] || getent passwd "$server_user" >/dev/null; then return; fi
  made_user=yes
  do_it "make the user $server_user" useradd --system --user-group --no-create-home \
    --home-dir /var/lib/spoke --shell /usr/sbin/nologin "$server_user"
}

start_unit() {
  if ! has_systemd; then
    say "installed; no systemd runs here, so start $prefix/bin/$daemon yourself"
    return
  fi
  do_it 'have systemd read its units' systemctl daemon-reload
  if [[ $role == server ]]; then do_it 'link its socket' systemd-tmpfiles --create "$tmpfiles/$daemon.conf"; fi
  do_it "enable $daemon.service" systemctl --quiet enable "$daemon.service"
  if [[ ! -e $settings && -z $config ]]; then
    say "installed; write $settings (an example is in $prefix/share/doc/$daemon/examples), then"
    say "  systemctl start $daemon"
  elif [[ $changed == yes ]]; then
    do_it "restart $daemon.service" systemctl restart "$daemon.service"
  else
    do_it "start $daemon.service" systemctl start "$daemon.service"
  fi
}

install_all() {
  changed=no
  fill_stage
  check_config
  make_user
  copy_files
  if [[ -z $root ]]; then start_unit; fi
}

# The program knows what in the kernel is ours; a node that never served has nothing.
clean_kernel() {
  if [[ $role != node || -n $root || ! -x $prefix/bin/$daemon || ! -d /run/spoke/netagent ]]; then return; fi
  local output
  if ! output=$("$prefix/bin/$daemon" --cleanup 2>&1); then
    if has_systemd; then systemctl start "$daemon.service" || true; fi
    printf '%s\n' "$output" >&2
    fail 'what the agent has set up cannot be removed (see above); nothing has been uninstalled'
  fi
}

remove_state() {
  if [[ -n $root ]]; then return; fi
  if [[ $role == node ]]; then
    rm -rf /run/spoke/netagent /run/spoke/tombstones
    rm -f /run/spoke/cni.sock /run/spoke/netagent-health.sock
  else
    rm -rf /var/lib/spoke /run/spoke-ipam-server
    rm -f /run/spoke/ipam-admin.sock
  fi
  rmdir /run/spoke 2>/dev/null || true
}

remove_files() {
  local path other=$root$prefix/share/spoke/installed-
  if [[ $role == node ]]; then other+=server.list; else other+=node.list; fi
  while IFS= read -r path; do
    if [[ -f $other ]] && grep -qxF "file $path" "$other"; then continue; fi
    do_it "remove $path" rm -f "$root$path"
  done < <(listed file)
  local folders=() user
  mapfile -t folders < <(listed folder | sort -r)
  user=$(listed user)
  do_it "remove $list" rm -f "$root$list"
  for path in "${folders[@]}"; do
    # The other role has files in it: then its list takes it over.
    if [[ $dry == no ]] && ! rmdir "$root$path" 2>/dev/null && [[ -d $root$path && -f $other ]]; then
      printf 'folder %s\n' "$path" >>"$other"
    fi
  done
  if [[ -n $user && -z $root ]] && getent passwd "$user" >/dev/null; then do_it "remove the user $user" userdel "$user"; fi
}

uninstall_all() {
  if [[ ! -f $root$list ]]; then say "nothing to uninstall: there is no $root$list" && return; fi
  if has_systemd; then do_it "stop $daemon.service" systemctl --quiet stop "$daemon.service"; fi
  do_it 'remove what the agent has set up in the kernel' clean_kernel
  if has_systemd; then do_it "disable $daemon.service" systemctl --quiet disable "$daemon.service"; fi
  do_it 'remove its state' remove_state
  remove_files
  if has_systemd; then do_it 'have systemd read its units' systemctl daemon-reload; fi
}

main() {
  parse "$@"
  check_machine
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  umask 022
  if [[ $uninstall == yes ]]; then uninstall_all; else install_all; fi
}

main "$@"
